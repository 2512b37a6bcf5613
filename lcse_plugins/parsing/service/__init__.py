"""Talking to a language model over the network.

`chat_client` sends, on the event loop of `background`; `reply_json` finds the tree in what comes back; `faults` names
what went wrong; `flights` lets callers with one question share one answer; `model_identity` says whose answer it was.
"""

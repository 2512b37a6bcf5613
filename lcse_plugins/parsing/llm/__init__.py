"""Reading queries with a language model.

    text → prompt → client → schema → grounding → Parse        any failure → the offline grammar

`schema` is the form of a reply, `prompt.txt` what the model is told, `grounding` checks a reply against the query's own
words, `parser` ties them together, `openai` is one client (LangChain's and LlamaIndex's are in their integrations),
`cached` keeps replies.
"""

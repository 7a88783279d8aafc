-- wrk's script for the no-op application: a body and an answer as large as those of /v1/vram-budgets.
wrk.method = "POST"
wrk.path = "/noop?answer_bytes=4000"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{"model": "meta-llama/Llama-3.3-70B-Instruct", "gpu": "h100-sxm-80gb", "padding": "' .. string.rep("x", 300) .. '"}'

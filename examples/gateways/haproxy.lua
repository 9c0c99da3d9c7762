-- Asks headgate server about a request, and answers refused ones.
local url = "http://127.0.0.1:8080/v1/decide?from=original"
local token = nil -- With auth: token, write the token of this gateway here.
local patience = 1000 -- milliseconds

core.register_action("headgate", { "http-req" }, function(txn)
    local ask = {}
    for name, values in pairs(txn.http:req_get_headers()) do
        ask[name] = {}
        for i = 0, #values do
            ask[name][i + 1] = values[i]
        end
    end
    ask["content-length"], ask["transfer-encoding"], ask["connection"], ask["expect"] = nil, nil, nil, nil
    ask["x-original-method"] = { txn.f:method() }
    ask["x-original-host"] = ask["host"]
    ask["x-original-uri"] = { txn.f:pathq() }
    ask["x-forwarded-for"] = { tostring(txn.f:src()) }
    ask["host"] = { "headgate" }
    ask["headgate-token"] = token and { token }

    local answer = core.httpclient():get { url = url, headers = ask, timeout = patience }
    if answer == nil or answer.status == 0 or answer.status >= 500 then
        return -- Without an answer, admit. To refuse: txn:done(txn:reply { status = 503 })
    end
    local function first(name)
        local values = answer.headers[name]
        return values and values[0]
    end
    if answer.status == 204 then
        if first("ratelimit") then
            txn:set_var("txn.headgate_limit", first("ratelimit"))
            txn:set_var("txn.headgate_policy", first("ratelimit-policy"))
        end
        return
    end
    local reply = txn:reply { status = answer.status, body = answer.body }
    for _, name in ipairs({ "content-type", "retry-after", "ratelimit", "ratelimit-policy", "location" }) do
        if first(name) then
            reply:add_header(name, first(name))
        end
    end
    txn:done(reply)
end)

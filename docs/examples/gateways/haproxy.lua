-- Asks headgate server about a request, and answers refused ones. haproxy.cfg says what happens without an answer.
local url = "http://headgate/v1/decide?from=original&refuse=403"
local server = "unix@headgate.sock" -- The section headgate of haproxy.cfg has the address and the timeouts.
local token = nil -- With auth: token, write the token of this gateway here.
local patience = 5000 -- milliseconds; longer than the timeouts of the section, because the HTTP client repeats the request then
-- HAProxy 2.6 crashes when its HTTP client sends more fields than tune.http.maxhdr, 101 by default. The rest is for the
-- fields that this file and the HTTP client add.
local most_fields = 80

local function first(answer, name)
    local values = answer.headers[name]
    return values and values[0]
end

local function refuse(txn, status, answer)
    local reply = txn:reply { status = status, body = answer and answer.body }
    for _, name in ipairs({ "content-type", "retry-after", "ratelimit", "ratelimit-policy", "location" }) do
        if answer and first(answer, name) then
            reply:add_header(name, first(answer, name))
        end
    end
    txn:done(reply)
end

core.register_action("headgate", { "http-req" }, function(txn)
    local ask, fields = {}, 0
    for name, values in pairs(txn.http:req_get_headers()) do
        ask[name] = {}
        for i = 0, #values do
            ask[name][i + 1] = values[i]
            fields = fields + 1
        end
    end
    if fields > most_fields then
        refuse(txn, 431)
    end
    ask["content-length"], ask["transfer-encoding"], ask["connection"], ask["expect"] = nil, nil, nil, nil
    ask["x-original-method"] = { txn.f:method() }
    ask["x-original-host"] = ask["host"]
    ask["x-original-uri"] = { txn.f:pathq() }
    ask["x-forwarded-for"] = { tostring(txn.f:src()) }
    ask["host"] = { "headgate" }
    ask["headgate-token"] = token and { token }

    local answer = core.httpclient():get { url = url, dst = server, headers = ask, timeout = patience }
    if answer == nil or answer.status == 0 or answer.status >= 500 then
        return -- without an answer
    end
    txn:set_var("txn.headgate_answered", true)
    if first(answer, "ratelimit") then
        txn:set_var("txn.headgate_limit", first(answer, "ratelimit"))
        txn:set_var("txn.headgate_policy", first(answer, "ratelimit-policy"))
    end
    if answer.status == 204 then
        return
    end
    local status = tonumber(first(answer, "headgate-status") or answer.status)
    if status == 401 or status == 403 and not first(answer, "ratelimit") then
        refuse(txn, 500) -- The token of this gateway is wrong, its caller may not ask, or it is not in identity.trusted_proxies.
    end
    refuse(txn, status, answer)
end)

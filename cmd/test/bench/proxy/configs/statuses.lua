-- Counts the responses by status. The measured rounds do without, because the function for each
-- response would slow wrk down.
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  refused, other = 0, 0
end

function response(status, headers, body)
  if status == 429 then
    refused = refused + 1
  elseif status < 200 or status > 299 then
    other = other + 1
  end
end

function done(summary, latency, requests)
  local all_refused, all_other = 0, 0
  for _, thread in ipairs(threads) do
    all_refused = all_refused + thread:get("refused")
    all_other = all_other + thread:get("other")
  end
  print("status 429: " .. all_refused)
  print("status other than 2xx and 429: " .. all_other)
end

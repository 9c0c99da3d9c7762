-- Forgets what is counted under one key and window, as if the key had never been seen.
--
-- KEYS  the states, one for each family of policies, and after them the lists that long
--       logs have beside theirs.
-- ARGV  the time and the slack as for a decision, and how many states there are.
-- Receipts from before must give nothing back. So what is left, for as long as a
-- receipt may be worth anything, is a later version of nothing.
-- Gives how many states there were.
local count, gone = tonumber(ARGV[3]), 0
for i = 1, count do
  local raw = call('GET', KEYS[i])
  if raw then
    call('SET', KEYS[i], pack('<Bd', FORGOTTEN, later(born(raw, now))), 'KEEPTTL')
    gone = gone + 1
  end
end
for i = count + 1, #KEYS do
  call('DEL', KEYS[i])
end
return gone

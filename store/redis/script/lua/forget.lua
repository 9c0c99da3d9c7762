-- Forgets what is counted under one name, as if the key had never been seen.
--
-- KEYS  the state, and the list that it has if it is a long log.
-- Receipts from before must give nothing back. So what is left, for as long as a
-- receipt may be worth anything, is a later version of nothing.
-- Gives 1 if there was anything to forget, else 0.
local raw = call('GET', KEYS[1])
call('DEL', KEYS[2])
if not raw then
  return 0
end
call('SET', KEYS[1], pack('<Bd', FORGOTTEN, later(born(raw, now))), 'KEEPTTL')
return 1

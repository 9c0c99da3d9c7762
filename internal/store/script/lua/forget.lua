-- Forgets the counts of one key and window, as if the key were new.
--
-- KEYS  the states, one for each family of policies, and then the lists of long logs.
-- ARGV  the time and the slack as for a decision, and the number of states.
--
-- Earlier receipts must not return units to a later state. So the script replaces a state by
-- its next version without counts, and keeps the time to live of the state.
-- Returns the number of states that existed.
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

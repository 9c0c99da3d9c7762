-- Decides a batch of groups in order. A group takes the units of all its ops, or none.
--
-- KEYS  the states, and then the lists of the sliding logs that may need a list.
-- ARGV  the time in microseconds, or an empty string for the server's time; the slack in
--       milliseconds, for which keys outlive their states; the query (batch.go); the
--       policies.
-- Returns one string of doubles: the time, and then the numbers of each op, which the
-- settle functions put into out. For a grant, the number of granted units comes first.
--
-- The script decides everything before it writes, except for the lists of long logs. A
-- server without free memory refuses the first write that needs memory, and no later
-- write of the script. So the script counts everything or nothing.
local query = ARGV[3]
local count, at = unpack_('<I2', query)
local states
if count <= 4000 and count == #KEYS then
  states = call('MGET', unpack(KEYS))
else
  states = {}
  for i = 1, count, 4000 do
    local some = call('MGET', unpack(KEYS, i, math.min(i + 3999, count)))
    for j = 1, #some do
      states[i + j - 1] = some[j]
    end
  end
end

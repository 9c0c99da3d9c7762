-- Decides a batch of groups, one after the other, each at one time: all of its ops are
-- taken, or none.
--
-- KEYS  the states, and after them the lists of the sliding logs that may need one.
-- ARGV  the time in microseconds, or nothing for the server's; how many milliseconds
--       keys are kept beyond their use; what is asked (batch.go); the policies.
-- Gives one string of doubles: the time, and for each op the numbers that its
-- algorithm's settle puts into out, after what a group with a least was granted.
--
-- All is decided before anything is written but the lists of long logs, and a full
-- server refuses the first write of a script that adds, and none after it: so either
-- everything is counted, or nothing.
local asked = ARGV[3]
local count, at = unpack_('<I2', asked)
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

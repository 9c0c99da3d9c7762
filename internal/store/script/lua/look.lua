-- As read.lua, for keys of many slots. A command may have keys of one slot alone, so each state
-- is read by itself. A state that this node does not have ends the call before anything is written:
-- its slot is another node's, or is on its way there.
local asked = ARGV[3]
local count, at = unpack_('<I2', asked)
local states, try = {}, redis.pcall
for i = 1, count do
  local state = try('GET', KEYS[i])
  if type(state) == 'table' then
    return { err = 'APART ' .. i .. ' ' .. state.err }
  end
  states[i] = state
end

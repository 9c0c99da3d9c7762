-- Like read.lua, for keys of many slots. A command may have keys of only one slot, so a
-- separate GET reads each state. If the slot of a state has moved to another node, or is
-- moving, the script ends with APART before it writes.
local query = ARGV[3]
local count, at = unpack_('<I2', query)
local states, try = {}, redis.pcall
for i = 1, count do
  local state = try('GET', KEYS[i])
  if type(state) == 'table' then
    return { err = 'APART ' .. i .. ' ' .. state.err }
  end
  states[i] = state
end

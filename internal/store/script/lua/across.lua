-- What decides a batch whose keys lie in many slots of one node of a Redis Cluster. It comes
-- first. Keys of several slots cannot be declared, so the states are the last arguments.
--
-- Valkey has the table server. Its slots may move in ways that were not tested here.
if rawget(_G, 'server') then
  return { err = 'APART 0 this server is not Redis' }
end
local KEYS = { unpack(ARGV, #ARGV - struct.unpack('<I2', ARGV[3]) + 1) }

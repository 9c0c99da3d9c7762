-- The first lines of the script for keys in many slots of one node of a Redis Cluster. A
-- call cannot declare keys of several slots, so the keys are the last arguments.
--
-- Only Valkey has the global table server. The script refuses Valkey, because moves of its
-- slots are not tested.
if rawget(_G, 'server') then
  return { err = 'APART 0 this server is not Redis' }
end
local KEYS = { unpack(ARGV, #ARGV - struct.unpack('<I2', ARGV[3]) + 1) }

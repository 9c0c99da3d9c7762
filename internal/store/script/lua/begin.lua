-- Globals that the scripts use, as locals. Reading a global costs as much as an addition.
local KEYS, ARGV, call, unpack_, pack = KEYS, ARGV, redis.call, struct.unpack, struct.pack
local floor, ceil, format = math.floor, math.ceil, string.format

-- now is the time in microseconds: the time in the arguments, or the server's time. Keys
-- expire at times relative to base. With the server's time, base is 0 and the times are
-- absolute, which saves the server a calculation. Otherwise base is now.
local now, base, how, slack = tonumber(ARGV[1]), 0, 'PXAT', tonumber(ARGV[2])
if now then
  base, how = now, 'PX'
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

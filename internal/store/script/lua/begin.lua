-- The names that scripts use, as locals: a look-up of a global takes as long as a sum.
local KEYS, ARGV, call, unpack_, pack = KEYS, ARGV, redis.call, struct.unpack, struct.pack
local floor, ceil, format = math.floor, math.ceil, string.format

-- now is the time in microseconds: the server's, or the one that was sent along. Times
-- to live count from base: 0 on the server's clock, which saves the server working
-- them out; the present beside a clock that was sent along.
local now, base, how, slack = tonumber(ARGV[1]), 0, 'PXAT', tonumber(ARGV[2])
if now then
  base, how = now, 'PX'
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

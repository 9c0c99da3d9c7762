-- Decides one group of Ops at one time: all are taken, or none.
--
-- KEYS  each Op's state, followed by its list if it is a sliding log.
-- ARGV  the time in microseconds, or nothing for the server's; how many
--       milliseconds keys are kept beyond their use; then for each Op its limit,
--       as Prepare packed it, and what is asked: mode, and cost as units (log) or
--       as a time (bucket, below 0 for one that can never pass).
-- A full server refuses the first write of a script that adds, and none after it: so
-- nothing is written before all is judged but what tidies a log that is there.
-- Gives the time, and five numbers for each Op:
--       bucket  code, where its units begin (microseconds, part), returned, 0
--       log     code, time decided at, units used, time until it passes, until it is empty
local PASSES, SCHEDULED, OVER, TOO_LONG, NEVER = 0, 1, 2, 3, 4
local TAKE, PEEK, BOOK = 0, 1, 2

-- judge_bucket tells whether b's cost passes, and where its tat would be.
local function judge_bucket(b, now)
  if b.tat < now then
    b.tat, b.part = now, 0
  end
  if b.cost < 0 then
    return NEVER
  end
  b.to, b.to_part = add(b.tat, b.part, b.cost, b.cost_part, b.den)
  local edge = now + b.refill
  if not after(b.to, b.to_part, edge, b.refill_part) then
    return PASSES
  elseif b.mode ~= BOOK then
    return OVER
  end
  local late, late_part = subtract(b.to, b.to_part, edge, b.refill_part, b.den)
  if late_part > 0 then
    late = late + 1
  end
  if late > b.max_wait then
    return TOO_LONG
  end
  return SCHEDULED
end

local function judge_log(log)
  log.used = log.units
  if log.cost > log.count then
    return NEVER
  elseif log.units + log.cost > log.count then
    return OVER
  end
  return PASSES
end

-- settle takes a judged Op, or counts it as an attempt. all tells whether the
-- group passes, countable that none of it can Never pass.
local function settle(op, all, countable)
  local passes = op.code <= SCHEDULED
  op.behind = passes and not all
  if op.mode == PEEK then
    return
  end
  if op.kind == LOG then
    if all or op.counts == 1 and countable then
      append(op, op.at, op.cost)
    end
  elseif all and op.cost + op.cost_part > 0 then
    op.from, op.from_part = op.tat, op.part
    op.tat, op.part, op.moved = op.to, op.to_part, true
  end
end

-- explain_log answers for a log. A refused Op is told what was used before it, and
-- the time until it passes with its own attempt counted, if it was; one that stays
-- behind is told what is left without it; a look, what a take would be told.
local function explain_log(log, now, reply)
  local used, retry, reset = log.units, 0, 0
  if log.code > PASSES then
    used = log.used
  elseif log.mode == PEEK and not log.behind then
    used = used + log.cost
  end
  if log.code == OVER then
    retry = leaves_at(log, log.units + log.cost - log.count) - now
  end
  if log.code == PASSES and used > log.units then
    reset = log.at + log.per - now
  elseif log.units > 0 then
    reset = log.newest + log.per - now
  end
  reply[#reply + 1] = log.at
  reply[#reply + 1] = used
  reply[#reply + 1] = retry
  reply[#reply + 1] = reset
end

local now, slack = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

local ops, key, all, countable = {}, 1, true, true
for i = 3, #ARGV, 2 do
  local op
  local kind = string.byte(ARGV[i])
  if kind == LOG then
    op = open_log(KEYS[key], KEYS[key + 1], now, ARGV[i])
    key = key + 2
  else
    op = open_bucket(KEYS[key], now, ARGV[i])
    key = key + 1
  end
  op.kind = kind
  op.mode, op.cost, op.cost_part = struct.unpack('<Bdd', ARGV[i + 1])
  if kind == LOG then
    op.code = judge_log(op)
  else
    op.code = judge_bucket(op, now)
  end
  all, countable = all and op.code <= SCHEDULED, countable and op.code ~= NEVER
  ops[#ops + 1] = op
end

local reply = { now }
for _, op in ipairs(ops) do
  settle(op, all, countable)
  reply[#reply + 1] = op.code
  if op.kind == LOG then
    explain_log(op, now, reply)
    if op.moved then
      save_log(op, now, slack)
    end
  else
    reply[#reply + 1] = op.from or op.tat
    reply[#reply + 1] = op.from_part or op.part
    reply[#reply + 1] = op.returned
    reply[#reply + 1] = 0
    if op.moved then
      save_bucket(op, now, slack)
    end
  end
end
return reply

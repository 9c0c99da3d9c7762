-- These functions decide any group: several ops, any algorithm, any kind of op, any state.

-- nothing is the algorithm of a bucket with a limit of 0. It does not change the state, which
-- may have units of another limit.
local function nothing()
  return {
    policy = function() return {} end,
    open = function() end,
    judge = function(op) return op.cost > 0 and env.NEVER or env.PASSES end,
    settle = function() end,
    refund = function() end,
    charge = function() end,
    room_at = function() return 0 end,
  }
end

local makers = {
  [0] = buckets, [1] = buckets, [2] = fixed_windows, [3] = logs, [4] = sliding_windows, [5] = bans, [6] = nothing,
  [7] = calendar_windows,
}
local algorithms, policies = {}, {}
local PASSES, NEVER, PEEK, REFUND, TAKE_IF_ALL = env.PASSES, env.NEVER, env.PEEK, env.REFUND, env.TAKE_IF_ALL
local out, max, min, byte, unpack_ = env.out, math.max, math.min, string.byte, struct.unpack

-- policy decodes the i-th policy of the call, from 1, and keeps it in policies.
local function policy(i)
  local raw = ARGV[3 + i]
  local maker = makers[byte(raw)]
  local algorithm = algorithms[maker]
  if not algorithm then
    algorithm = maker(env)
    algorithms[maker] = algorithm
  end
  local p = algorithm.policy(raw)
  p.algorithm = algorithm
  policies[i] = p
  return p
end

-- open makes an op and loads the state of its key. The constructor lists all fields that the
-- algorithms set later, because growing a table costs more. edges are those of the windows of
-- a policy of the calendar, or false.
local function open(which, key, list, mode, cost, edges)
  local p = policies[which] or policy(which)
  local op = {
    policy = p, key = key, mode = mode, cost = cost, list = list > 0 and KEYS[env.count + list] or nil,
    code = 0, version = 0, moved = false, per = 0, at = 0, used = 0, units = 0, newest = 0, trimmed = 0, base = 0, first = 0,
    part = 0, rings = false, ring = false, edges = edges, start = 0, outside = false, ended = false, carried = 0, owed = 0, due = 0,
  }
  p.algorithm.open(op)
  return op
end

-- grant sets the cost of all ops to the largest number, from least to their cost, with which
-- all ops pass. If least does not pass, the cost is least. The number goes into out.
local function grant(ops, least)
  local n = ops[1].cost
  for i = 1, #ops do
    n = min(n, ops[i].policy.algorithm.room_at(ops[i]))
  end
  n = max(n, least)
  for i = 1, #ops do
    ops[i].cost = n
  end
  env.o = env.o + 1
  out[env.o] = n
end

-- refund gives the units of a Refund back, and writes the state if any units came back. Then
-- the op is a Peek of cost 0, which gives the numbers after the refund. A fixed window says how
-- many units came back; the other algorithms give nil.
local function refund(op)
  local units = op.policy.algorithm.refund(op)
  op.mode, op.cost = PEEK, 0
  return units
end

-- charge counts up to the cost of a Charge, and writes the state. Then the op is a Peek of cost 0. It
-- gives the number of units.
local function charge(op)
  local units = op.policy.algorithm.charge(op)
  op.mode, op.cost = PEEK, 0
  return units
end

-- judge_all decides the opened ops of one group. The group takes the units of all ops, or none.
-- A Refund or a Charge is the only op of its group.
local function judge_all(ops, least)
  if least > 0 then
    grant(ops, least)
  end
  local corrected = nil
  if ops[1].mode == REFUND then
    corrected = refund(ops[1])
  elseif ops[1].mode == env.CHARGE then
    corrected = charge(ops[1])
  end
  local all, possible, outside = true, true, false
  for i = 1, #ops do
    local op = ops[i]
    local code = op.policy.algorithm.judge(op)
    op.code = code
    all, possible, outside = all and code == PASSES, possible and code ~= NEVER, outside or op.outside
  end
  if outside then -- An op has no window for this time. The group counts nothing.
    for i = 1, #ops do
      ops[i].mode = PEEK
    end
  end
  for i = 1, #ops do
    local op = ops[i]
    if not all and op.mode == TAKE_IF_ALL and op.code == PASSES then
      op.cost = 0 -- In a refused group, such an op counts nothing. As with other ops, a state that has moved is saved.
    end
    op.policy.algorithm.settle(op, all, possible)
  end
  if corrected then -- In place of the version: a Refund and a Charge have no receipt.
    out[env.o] = corrected
  end
end

-- decide_one decides one Take.
local function decide_one(which, key, list, cost, least)
  judge_all({ open(which, key, list, env.TAKE, cost, false) }, least)
end

-- decide_group decodes and decides a group of the query, and gives the position of the next
-- group.
local function decide_group(query, at)
  local kind, n, least, which, key, list, mode, cost
  kind, n, least, at = unpack_('<BBd', query, at)
  local ops = {}
  for i = 1, n do
    which, key, list, mode, cost, at = unpack_('<I2I2I2Bd', query, at)
    local edges = false
    if (policies[which] or policy(which)).calendar then
      edges = { unpack_('<dddd', query, at) }
      at = edges[5]
    end
    ops[i] = open(which, key, list, mode, cost, edges)
  end
  judge_all(ops, least)
  return at
end

-- Deciding any group: several ops, any algorithm, any mode, any state.

-- A bucket of a limit of 0 leaves alone what another limit has counted.
local function nothing()
  return {
    policy = function() return {} end,
    open = function() end,
    judge = function(op) return op.cost > 0 and env.NEVER or env.PASSES end,
    settle = function() end,
    room_at = function() return 0 end,
  }
end

local makers = {
  [0] = buckets, [1] = buckets, [2] = fixed_windows, [3] = logs, [4] = sliding_windows, [5] = bans, [6] = nothing,
}
local algorithms, policies = {}, {}
local PASSES, NEVER, out, max, min, byte, unpack_ =
  env.PASSES, env.NEVER, env.out, math.max, math.min, string.byte, struct.unpack

-- policy reads the i-th policy of the call, from 1, once.
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

-- open gives an op with the state of its key under its policy. The table has room for
-- all that will be put into it: making room later takes longer.
local function open(which, key, list, mode, cost)
  local p = policies[which] or policy(which)
  local op = {
    policy = p, key = key, mode = mode, cost = cost, list = list > 0 and KEYS[env.count + list] or nil,
    code = 0, version = 0, moved = false, per = 0, at = 0, used = 0, units = 0, newest = 0, trimmed = 0, base = 0, first = 0,
    part = 0, rings = false, ring = false,
  }
  p.algorithm.open(op)
  return op
end

-- grant gives the greatest cost from least up to that of the ops which all pass, or
-- least if there is none, and says so.
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

-- judge_all decides the opened ops of one group: all are taken, or none.
local function judge_all(ops, least)
  if least > 0 then
    grant(ops, least)
  end
  local all, possible = true, true
  for i = 1, #ops do
    local op = ops[i]
    local code = op.policy.algorithm.judge(op)
    op.code = code
    all, possible = all and code == PASSES, possible and code ~= NEVER
  end
  for i = 1, #ops do
    ops[i].policy.algorithm.settle(ops[i], all, possible)
  end
end

-- decide_one decides one Take.
local function decide_one(which, key, list, cost, least)
  judge_all({ open(which, key, list, env.TAKE, cost) }, least)
end

-- decide_group reads a group from asked, and gives where the next one begins.
local function decide_group(asked, at)
  local kind, n, least, which, key, list, mode, cost
  kind, n, least, at = unpack_('<BBd', asked, at)
  local ops = {}
  for i = 1, n do
    which, key, list, mode, cost, at = unpack_('<I2I2I2Bd', asked, at)
    ops[i] = open(which, key, list, mode, cost)
  end
  judge_all(ops, least)
  return at
end

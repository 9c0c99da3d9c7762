-- surroundings gives the environment of the algorithms: the call's time, the states, the
-- output and the codes of decisions. An algorithm is a function that takes the environment
-- and makes the algorithm's functions. Each call of a script makes its functions again, so
-- a call makes only the functions of the algorithms that it uses.
local function surroundings(now, base, how, slack, states, due, out, count)
  local PASSES, OVER, NEVER = 0, 1, 2

  -- replaces reports whether raw is a state of another algorithm. The first decision
  -- other than a Peek replaces such a state.
  local function replaces(raw)
    return raw and #raw > 9 or false
  end

  -- units_left and judge_units serve the algorithms that compare used units with a count.
  local function units_left(op)
    return op.policy.count - op.used
  end

  local function judge_units(op)
    local limit = op.policy.count
    if op.cost > limit then
      return NEVER
    end
    return op.used + op.cost > limit and OVER or PASSES
  end

  return {
    now = now, base = base, slack = slack, states = states, due = due, out = out, o = 1, count = count,
    expire = how == 'PX' and 'PEXPIRE' or 'PEXPIREAT',
    PASSES = PASSES, OVER = OVER, NEVER = NEVER, TAKE = 0, PEEK = 1, BOOK = 2, REFUND = 3, TAKE_IF_ALL = 4, TAKE_NOW = 5, CHARGE = 6,
    replaces = replaces, units_left = units_left, judge_units = judge_units,
  }
end

-- fixed_window: the count of the window [start, start + per), the same steps as
-- internal/limit/fixed.go.
--
-- A state is '<Bdddd': algorithm, version, start, units, per. In a policy, counts is 1 if
-- refused attempts count, and 2 if every attempt counts (CountAll).
local function fixed_windows(env)
  local unpack_, pack, byte, ceil, max, min = struct.unpack, struct.pack, string.byte, math.ceil, math.max, math.min
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local FIXED = '<Bdddd'
  local CEILING = 9007199254740991 -- The largest value of a counter.

  local function fixed_policy(raw)
    local kind, count, per, counts, owe = unpack_('<BddBd', raw)
    return { kind = kind, count = count, per = per, owe = owe, counts = counts > 0, all = counts == 2, algorithm = false }
  end

  local function load_fixed(w, raw)
    if not raw or byte(raw) ~= 2 or #raw ~= 33 then
      return false
    end
    local kind
    kind, w.version, w.start, w.units, w.per = unpack_(FIXED, raw)
    return true
  end

  local function pack_fixed(w)
    return pack(FIXED, 2, w.version, w.start, w.units, w.per)
  end

  -- carry gives the units that the key still owes after a number of windows.
  local function carry(w, windows)
    local p = w.policy
    if p.owe == 0 then
      return 0
    end
    local left = min(w.units, p.count + p.owe)
    return windows >= ceil(left / p.count) and 0 or left - windows * p.count
  end

  -- roll_fixed moves w to the window of now, and gives the time of the decision. After the
  -- clock stepped back by at most one window, w stays in the newer window. After a longer
  -- step, the count moves to the window of now.
  local function roll_fixed(w, per)
    local start = w.start
    if now >= start and now < start + per then
      return now
    elseif now < start and start - now <= per then
      return start
    elseif now > start then
      w.moved = w.moved or w.units > 0
      w.units = carry(w, (now - now % per - start) / per)
    else
      w.version, w.moved = later(w.version), true
    end
    w.start = now - now % per
    return now
  end

  -- use sets the used units as the policy sees them. A larger count or counted refusals may have
  -- left more units than p.count. Only a policy that counts every attempt needs their number.
  local function use(w)
    local p = w.policy
    w.used = p.all and w.units or min(w.units, p.count)
  end

  local function open_fixed(w)
    local p, raw = w.policy, states[w.key]
    if not load_fixed(w, raw) then
      w.version, w.start, w.units = born(raw, now), now - now % p.per, 0
      w.moved = env.replaces(raw)
    end
    w.per = p.per
    w.at = roll_fixed(w, p.per)
    use(w)
  end

  local function judge_fixed(w)
    if w.policy.all and w.used > w.policy.count and w.cost == 0 then
      return OVER
    end
    return env.judge_units(w)
  end

  local function save_fixed(w)
    local p, windows = w.policy, 1
    if p.owe > 0 then
      windows = max(1, ceil(min(w.units, p.count + p.owe) / p.count))
    end
    states[w.key], due[w.key] = pack_fixed(w), w.start + windows * w.per - base
  end

  -- refund_fixed gives units back to the window, and gives their number. Earlier receipts become
  -- invalid.
  local function refund_fixed(w)
    local units = min(w.units, w.cost)
    if units > 0 then
      w.units, w.version = w.units - units, later(w.version)
      use(w)
      save_fixed(w)
    end
    return units
  end

  -- charge_fixed counts up to the cost, until the window owes the overdraft.
  local function charge_fixed(w)
    local p = w.policy
    local units = p.count > 0 and max(0, min(w.cost, p.count + p.owe - w.units)) or 0
    if units > 0 then
      w.units = w.units + units
      use(w)
      save_fixed(w)
    end
    return units
  end

  local function settle_fixed(w, all, possible)
    local o = env.o
    out[o + 1], out[o + 2], out[o + 3] = w.at - now, w.policy.owe > 0 and w.units or w.used, w.version
    env.o = o + 3
    if w.mode == PEEK then
      return
    end
    if w.cost > 0 and (all or possible and w.policy.counts or w.policy.all) then
      w.units, w.moved = min(w.units + w.cost, CEILING), true
    end
    if w.moved then
      save_fixed(w)
    end
  end

  return {
    policy = fixed_policy, open = open_fixed, judge = judge_fixed, settle = settle_fixed, refund = refund_fixed,
    charge = charge_fixed, room_at = env.units_left, load = load_fixed, pack = pack_fixed,
  }
end

-- calendar windows: the count of a window whose edges are in the op, the same steps as
-- limit/calendar.go.
--
-- A state is '<Bddd': kind, version, the start of the window in which the count began, units.
-- In a policy, kept is the longest time from that start for which any version can count in the
-- state. spread is how far apart the windows of two versions may begin and be the same window.
-- counts is as in fixed.lua.
local function calendar_windows(env)
  local unpack_, pack, byte, min = struct.unpack, struct.pack, string.byte, math.min
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local KIND, CALENDAR = 7, '<Bddd'
  local CEILING = 9007199254740991 -- The largest value of a counter.

  local function calendar_policy(raw)
    local kind, count, kept, spread, counts = unpack_('<BdddB', raw)
    return {
      kind = kind, count = count, kept = kept, spread = spread, counts = counts > 0, all = counts == 2, algorithm = false,
      calendar = true,
    }
  end

  local function load_calendar(w, raw)
    if not raw or byte(raw) ~= KIND or #raw ~= 25 then
      return false
    end
    local kind
    kind, w.version, w.start, w.units = unpack_(CALENDAR, raw)
    return true
  end

  local function pack_calendar(w)
    return pack(CALENDAR, KIND, w.version, w.start, w.units)
  end

  -- roll_calendar moves w to the window from first to last, which contains now. A count that
  -- began at most a spread before first stays: it is the same window of another version.
  local function roll_calendar(w, first, last)
    local start = w.start
    if first > start and (w.units == 0 or first - start > w.policy.spread) then
      w.moved = w.moved or w.units > 0
      w.start, w.units = first, 0
    elseif start > last then
      w.start, w.version, w.moved = first, later(w.version), true
    end
  end

  local function use(w)
    local p = w.policy
    w.used = p.all and w.units or min(w.units, p.count)
  end

  -- open_calendar picks the window of now. Outside the edges, nothing may be counted.
  local function open_calendar(w)
    local raw, edges = states[w.key], w.edges
    if now < edges[1] or now >= edges[4] then
      w.outside = true
      return
    end
    local i = 1
    while now >= edges[i + 1] do
      i = i + 1
    end
    if not load_calendar(w, raw) then
      w.version, w.start, w.units = born(raw, now), edges[i], 0
      w.moved = env.replaces(raw)
    end
    roll_calendar(w, edges[i], edges[i + 1])
    use(w)
  end

  local function judge_calendar(w)
    if w.policy.all and w.used > w.policy.count and w.cost == 0 then
      return OVER
    end
    return env.judge_units(w)
  end

  local function save_calendar(w)
    states[w.key], due[w.key] = pack_calendar(w), w.start + w.policy.kept - base
  end

  -- refund_calendar gives units back to the count, and gives their number. Earlier receipts become
  -- invalid.
  local function refund_calendar(w)
    local units = min(w.units, w.cost)
    if units > 0 then
      w.units, w.version = w.units - units, later(w.version)
      use(w)
      save_calendar(w)
    end
    return units
  end

  local function settle_calendar(w, all, possible)
    local o = env.o
    out[o + 1], out[o + 2], out[o + 3] = w.start, w.outside and -1 or w.used, w.version
    env.o = o + 3
    if w.mode == PEEK then
      return
    end
    if w.cost > 0 and (all or possible and w.policy.counts or w.policy.all) then
      w.units, w.moved = min(w.units + w.cost, CEILING), true
    end
    if w.moved then
      save_calendar(w)
    end
  end

  return {
    policy = calendar_policy, open = open_calendar, judge = judge_calendar, settle = settle_calendar, refund = refund_calendar,
    room_at = env.units_left, load = load_calendar, pack = pack_calendar,
  }
end

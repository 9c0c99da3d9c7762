-- calendar windows: the count of a window whose edges are in the op, the same steps as
-- limit/calendar.go.
--
-- A state is '<Bddd': kind, version, start, units. start is the start of the window in which the
-- count began, a whole second, and one microsecond for each minute from a spread after it to the
-- end of the minute of the last unit. In a policy, kept is the longest time from the start for
-- which any version can count in the state, without these minutes. spread is how far apart the
-- windows of two versions may begin and be the same window.
-- counts is as in fixed.lua.
local function calendar_windows(env)
  local unpack_, pack, byte, min, max = struct.unpack, struct.pack, string.byte, math.min, math.max
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local KIND, CALENDAR = 7, '<Bddd'
  local CEILING = 9007199254740991 -- The largest value of a counter.
  local SECOND, MINUTE, MOST_LATE = 1000000, 60000000, 999999

  -- free_at gives the time from which no window can count the state.
  local function free_at(w)
    local late = w.start % SECOND
    return w.start - late + late * MINUTE + w.policy.kept
  end

  -- counted_at notes the minute of a unit.
  local function counted_at(w, at)
    local began = w.start - w.start % SECOND
    local late = at - began - w.policy.spread
    if late >= 0 then
      local minutes = (late - late % MINUTE) / MINUTE + 1
      if minutes > MOST_LATE then
        began, minutes = began + (minutes - MOST_LATE) * MINUTE, MOST_LATE
      end
      w.start = max(w.start, began + minutes)
    end
  end

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
  -- began at most a spread before first stays: it is the same window of another version. A
  -- count with a unit from first on stays too.
  local function roll_calendar(w, first, last)
    local late = w.start % SECOND
    local start, spread = w.start - late, w.policy.spread
    first = first - first % SECOND
    if first > start and (w.units == 0 or first - start > spread and first - start >= spread + late * MINUTE) then
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
    states[w.key], due[w.key] = pack_calendar(w), free_at(w) - base
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
      counted_at(w, max(now, w.start - w.start % SECOND))
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

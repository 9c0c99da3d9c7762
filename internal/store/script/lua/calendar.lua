-- calendar windows: the counts of a key in windows whose edges are in the op, the same steps as
-- internal/limit/calendar.go.
--
-- A state is '<Bddd': kind, version, start, units of the newest count, and then '<dd' for the start
-- and the units of each ended count, the newest first. A start is that of the window in which the
-- count began, a whole second, and one microsecond for each minute from there to the end of the
-- minute of the last unit. In a policy, longest bounds the windows of the unit, and counts is as in
-- fixed.lua.
local function calendar_windows(env)
  local unpack_, pack, byte, min, max = struct.unpack, struct.pack, string.byte, math.min, math.max
  local now, base, states, due, out = env.now, env.base, env.states, env.due, env.out
  local OVER, PEEK = env.OVER, env.PEEK

  local KIND, CALENDAR, COUNT = 7, '<Bddd', '<dd'
  local CEILING = 9007199254740991 -- The largest value of a counter.
  local SECOND, MINUTE, MOST_LATE = 1000000, 60000000, 999999

  local function began_of(start)
    return start - start % SECOND
  end

  local function last_of(start)
    local minutes = start % SECOND
    return start - minutes + minutes * MINUTE
  end

  -- start_of gives the start of a count from began to the minute that contains last.
  local function start_of(began, last)
    local late = last - began
    local minutes = (late - late % MINUTE) / MINUTE + 1
    if minutes > MOST_LATE then
      began, minutes = began + (minutes - MOST_LATE) * MINUTE, MOST_LATE
    end
    return began + minutes
  end

  -- free_at gives the time from which no window can contain a unit of the state.
  local function free_at(w)
    local last, ended = last_of(w.start), w.ended
    for i = 1, 5, 2 do
      if ended[i + 1] > 0 then
        last = max(last, last_of(ended[i]))
      end
    end
    return last + w.policy.longest
  end

  local function calendar_policy(raw)
    local kind, count, longest, counts, owe = unpack_('<BddBd', raw)
    return {
      kind = kind, count = count, owe = owe, longest = longest, counts = counts > 0, all = counts == 2, algorithm = false, calendar = true,
    }
  end

  local function load_calendar(w, raw)
    w.ended = { 0, 0, 0, 0, 0, 0 }
    if not raw or byte(raw) ~= KIND or #raw % 16 ~= 9 or #raw < 25 or #raw > 73 then
      return false
    end
    local kind
    kind, w.version, w.start, w.units = unpack_(CALENDAR, raw)
    for i = 26, #raw, 16 do
      local at = (i - 26) / 8 + 1
      w.ended[at], w.ended[at + 1] = unpack_(COUNT, raw, i)
    end
    return true
  end

  local function pack_calendar(w)
    local raw, ended = pack(CALENDAR, KIND, w.version, w.start, w.units), w.ended
    for i = 1, 5, 2 do
      if ended[i + 1] > 0 then
        raw = raw .. pack(COUNT, ended[i], ended[i + 1])
      end
    end
    return raw
  end

  -- end_count makes the present count an ended one. It drops counts that no window can contain, and
  -- makes the oldest two of four counts one.
  local function end_count(w)
    local ended, kept, n = w.ended, { 0, 0, 0, 0, 0, 0 }, 0
    local all = { w.start, w.units, ended[1], ended[2], ended[3], ended[4], ended[5], ended[6] }
    for i = 1, 7, 2 do
      if all[i + 1] > 0 and last_of(all[i]) + w.policy.longest > w.at then
        kept[n + 1], kept[n + 2], n = all[i], all[i + 1], n + 2
      end
    end
    if n == 8 then
      local last = max(last_of(kept[5]), last_of(kept[7]))
      kept[5] = start_of(min(began_of(kept[5]), began_of(kept[7])), last - 1)
      kept[6] = min(kept[6] + kept[8], CEILING)
    end
    w.ended = kept
  end

  local function pick_window(edges, at)
    local i = 1
    while i < 3 and at >= edges[i + 1] do
      i = i + 1
    end
    return i
  end

  -- begin_count makes an empty count begin with the window from first, but not before the end of the
  -- count before it. If the clock has stepped back to before that end, that count is the present one
  -- again.
  local function begin_count(w, first)
    local ended = w.ended
    w.start = first
    for i = 1, 5, 2 do
      if ended[i + 1] > 0 then
        local last = last_of(ended[i])
        if last <= now then
          w.start = max(first, last)
        else
          w.start, w.units, w.moved = ended[i], ended[i + 1], true
          for j = i, 6 do
            ended[j] = ended[j + 2] or 0
          end
        end
        return
      end
    end
  end

  -- roll_calendar moves w to the window of now. A count without a unit in that window ends. After the
  -- clock stepped back by at most one window, the time is that of the start of the count. After a
  -- longer step, the count moves to the window of now.
  local function roll_calendar(w)
    local edges = w.edges
    local i = pick_window(edges, now)
    if w.units == 0 then
      begin_count(w, edges[i])
    end
    local began = began_of(w.start)
    w.at = now
    if now < began and began <= edges[i + 1] then
      w.at = began
      i = pick_window(edges, began)
    elseif now < began then
      began = edges[i]
      w.start, w.version, w.moved = start_of(began, now), later(w.version), true
      for j = 1, 5, 2 do
        if began_of(w.ended[j]) >= edges[i + 1] then
          w.ended[j], w.ended[j + 1] = 0, 0
        end
      end
    end
    w.first = i
    local first = edges[i]
    if first > began and last_of(w.start) <= first then
      w.moved = true
      end_count(w)
      w.start, w.units = first, 0
    end
  end

  -- units_in gives the units that can be in a window from first on, and 1 if some of them can be from
  -- before it, else 0.
  local function units_in(w, first)
    local units, carried, ended = 0, 0, w.ended
    if w.units > 0 and last_of(w.start) > first then
      units, carried = w.units, began_of(w.start) < first and 1 or 0
    end
    for i = 1, 5, 2 do
      if ended[i + 1] > 0 and last_of(ended[i]) > first then
        units, carried = min(units + ended[i + 1], CEILING), began_of(ended[i]) < first and 1 or carried
      end
    end
    return units, carried
  end

  -- leaves gives the first edge after the window from which at most this number of the units count, or
  -- the last edge.
  local function leaves(w, most)
    for i = w.first + 1, 3 do
      if units_in(w, w.edges[i]) <= most then
        return w.edges[i]
      end
    end
    return w.edges[4]
  end

  local function use(w)
    local p, units = w.policy, nil
    units, w.carried = units_in(w, w.edges[w.first])
    w.used = p.all and units or min(units, p.count)
  end

  -- open_calendar picks the window of now. Outside the edges, nothing may be counted.
  local function open_calendar(w)
    local raw, edges = states[w.key], w.edges
    if now < edges[1] or now >= edges[4] then
      w.outside = true
      return
    end
    if not load_calendar(w, raw) then
      w.version, w.start, w.units = born(raw, now), edges[pick_window(edges, now)], 0
      w.moved = env.replaces(raw)
    end
    roll_calendar(w)
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

  -- refund_calendar gives units of the window back, the newest count first, and gives their number.
  -- Earlier receipts become invalid.
  local function refund_calendar(w)
    if w.outside then
      return 0
    end
    local units, ended = min(w.units, w.cost), w.ended
    w.units = w.units - units
    for i = 1, 5, 2 do
      if last_of(ended[i]) > w.edges[w.first] then
        local more = min(ended[i + 1], w.cost - units)
        ended[i + 1], units = ended[i + 1] - more, units + more
      end
    end
    if units > 0 then
      w.version = later(w.version)
      use(w)
      save_calendar(w)
    end
    return units
  end

  -- charge_calendar counts up to the cost, until the window owes the overdraft.
  local function charge_calendar(w)
    if w.outside or w.policy.count == 0 then
      return 0
    end
    local units = max(0, min(w.cost, w.policy.count + w.policy.owe - units_in(w, w.edges[w.first])))
    if units > 0 then
      w.units = w.units + units
      w.start = max(w.start, start_of(began_of(w.start), w.at))
      use(w)
      save_calendar(w)
    end
    return units
  end

  local function settle_calendar(w, all, possible)
    local o = env.o
    env.o = o + 6
    if w.outside then
      out[o + 1], out[o + 2], out[o + 3], out[o + 4], out[o + 5], out[o + 6] = 0, -1, 0, 0, 0, 0
      return
    end
    local empty = leaves(w, 0)
    local passes = empty
    if empty > w.edges[w.first + 1] then
      passes = leaves(w, max(w.policy.count - w.cost, 0))
    end
    out[o + 1], out[o + 2], out[o + 3] = w.at - now, w.used, w.carried
    out[o + 4], out[o + 5], out[o + 6] = passes - now, empty - now, w.version
    if w.mode == PEEK then
      return
    end
    if w.cost > 0 and (all or possible and w.policy.counts or w.policy.all) then
      w.units, w.moved = min(w.units + w.cost, CEILING), true
      w.start = max(w.start, start_of(began_of(w.start), w.at))
    end
    if w.moved then
      save_calendar(w)
    end
  end

  -- give_back returns units to the count in which they were taken, and reports whether there is one.
  local function give_back(w, from, units)
    if from >= began_of(w.start) and from < last_of(w.start) then
      w.units = w.units - min(w.units, units)
      return true
    end
    local ended = w.ended
    for i = 1, 5, 2 do
      if from >= began_of(ended[i]) and from < last_of(ended[i]) then
        ended[i + 1] = ended[i + 1] - min(ended[i + 1], units)
        return true
      end
    end
    return false
  end

  return {
    policy = calendar_policy, open = open_calendar, judge = judge_calendar, settle = settle_calendar, refund = refund_calendar,
    charge = charge_calendar, room_at = env.units_left, load = load_calendar, pack = pack_calendar, give_back = give_back,
  }
end

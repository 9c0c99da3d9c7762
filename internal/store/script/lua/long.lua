-- Functions for logs with a list, and rarely used functions for all logs.
local function long_logs(env)
  local unpack_, pack, sub, call, pcall = struct.unpack, struct.pack, string.sub, redis.call, redis.pcall
  local ENTRY = '<I7I3'

  -- Up to INLINE bytes, the back moves to the front, and the log needs no list.
  local INLINE, BACK_FULL = 1920, 640

  local sums = {} -- The units of chunks, by list and index. save_list clears a changed list.

  local function sum(entries)
    local units, at, when, n = 0, 1, nil, nil
    while at <= #entries do
      when, n, at = unpack_(ENTRY, entries, at)
      units = units + n
    end
    return units
  end

  -- chunk reads the i-th chunk in the window, from 0. It gives false if the list is missing
  -- or its key has another type. Any other error, such as a missing right, ends the script: a
  -- log that looked lost would admit its whole limit again.
  local function chunk(log, i)
    local raw = pcall('LINDEX', log.list, log.first + i)
    if type(raw) == 'table' and not string.find(raw.err, 'WRONGTYPE', 1, true) then
      error(raw.err)
    end
    return type(raw) == 'string' and raw
  end

  -- load_front moves the oldest chunk with entries after the time gone to the front. It
  -- reports whether there is such a chunk.
  local function load_front(log, gone)
    while log.chunks > 0 do
      local raw = chunk(log, 0)
      if not raw then
        log.chunks, log.units = 0, sum(log.back)
        return false
      end
      log.first, log.chunks = log.first + 1, log.chunks - 1
      if (unpack_('<I7', raw, #raw - 9)) > gone then
        log.front = sub(raw, 5)
        return true
      end
      log.units = log.units - (unpack_('<I4', raw))
    end
    return false
  end

  -- trim drops the oldest units until count units are left. Counted refusals can exceed count.
  local function trim(log, count, refill)
    local entries = log.front ~= '' and log.front or refill(log, -1)
    while entries and log.units > count do
      local from, length = 1, #entries
      while from <= length and log.units > count do
        local at, units, to = unpack_(ENTRY, entries, from)
        local excess = log.units - count
        log.trimmed = at + log.base
        if units > excess then
          log.front = pack(ENTRY, at, units - excess) .. sub(entries, to)
          log.units = count
          return
        end
        log.units, from = log.units - units, to
      end
      log.front = sub(entries, from)
      entries = log.front ~= '' and log.front or refill(log, -1)
    end
  end

  local function expire_list(log)
    local ms = math.ceil((log.due - env.base) / 1000) + env.slack
    call(env.expire, log.list, string.format('%.0f', ms))
  end

  -- save_list removes expired chunks from the list, and moves a full back to the front or to
  -- the list. The newest entry stays in the back, because append adds units of the same time
  -- to it.
  local function save_list(log)
    sums[log.list] = nil
    if log.first > 0 and log.chunks > 0 then
      call('LTRIM', log.list, log.first, -1)
    elseif log.first > 0 then
      call('DEL', log.list)
    end
    log.first = 0
    if #log.back >= BACK_FULL then
      if log.chunks == 0 and #log.front + #log.back <= INLINE then
        log.front, log.back = log.front .. log.back, ''
      else
        if log.chunks == 0 then
          call('DEL', log.list) -- An old list may be left from a state that was lost.
        end
        repeat -- A debt may have filled the back several times.
          local entries = sub(log.back, 1, math.min(#log.back - 10, BACK_FULL))
          call('RPUSH', log.list, pack('<I4', sum(entries)) .. entries)
          log.chunks, log.back, log.shifted = log.chunks + 1, sub(log.back, #entries + 1), true
        until #log.back < BACK_FULL
      end
    end
    if log.shifted and log.chunks > 0 then
      expire_list(log)
    end
  end

  -- passed subtracts the units of entries from n. It gives the time of the entry at which n
  -- reaches 0, or nil and the rest of n.
  local function passed(entries, from, n)
    while from <= #entries do
      local at, units
      at, units, from = unpack_(ENTRY, entries, from)
      n = n - units
      if n <= 0 then
        return at
      end
    end
    return nil, n
  end

  -- units_of gives the units of the i-th chunk in the window, from 0. It reads each chunk once
  -- in a call, because a batch of refusals with high costs needs all chunks many times.
  local function units_of(log, i)
    local known = sums[log.list]
    if not known then
      known = {}
      sums[log.list] = known
    end
    local units = known[log.first + i]
    if not units then
      local raw = chunk(log, i)
      units = raw and unpack_('<I4', raw) or 0
      known[log.first + i] = units
    end
    return units
  end

  -- leaves_at gives the time at which the n oldest units have left the window.
  local function leaves_at(log, n)
    local at
    at, n = passed(log.front, 1, n)
    local i = 0
    while not at and i < log.chunks do
      local units = units_of(log, i)
      if units >= n then
        at, n = passed(chunk(log, i) or '', 5, n)
        break
      end
      n, i = n - units, i + 1
    end
    if not at then
      at = passed(log.back, 1, n)
    end
    return (at and at + log.base or log.newest) + log.per
  end

  -- popped removes a chunk from the list and gives its entries, which are empty if the list
  -- is missing.
  local function popped(log, from_end)
    local raw = call(from_end, log.list)
    sums[log.list] = nil
    log.chunks = raw and log.chunks - 1 or 0
    return raw and sub(raw, 5) or ''
  end

  -- mend moves a chunk to an empty front or back. While there are chunks, neither may be
  -- empty.
  local function mend(log)
    if log.front == '' and log.chunks > 0 then
      log.front = popped(log, 'LPOP')
    end
    if log.back == '' and log.chunks > 0 then
      log.back = popped(log, 'RPOP')
    end
    local entries = log.back ~= '' and log.back or log.front
    if entries ~= '' then
      log.newest = log.base + (unpack_('<I7', entries, #entries - 9))
    end
  end

  -- cut removes up to n of the newest units of entries. It gives the remaining entries, and the
  -- rest of n.
  local function cut(entries, n)
    local to = #entries
    while to > 0 and n > 0 do
      local at, units = unpack_(ENTRY, entries, to - 9)
      if units > n then
        return sub(entries, 1, to - 10) .. pack(ENTRY, at, units - n), 0
      end
      n, to = n - units, to - 10
    end
    return sub(entries, 1, to), n
  end

  -- drop_newest removes the n newest units of a log. n is at most the units of the log.
  local function drop_newest(log, n)
    log.units = log.units - n
    if log.first > 0 and log.chunks > 0 then
      call('LTRIM', log.list, log.first, -1) -- mend takes the oldest chunk that is in the window.
      log.first, sums[log.list] = 0, nil
    end
    log.back, n = cut(log.back, n)
    while log.back == '' and log.chunks > 0 do
      log.back, n = cut(popped(log, 'RPOP'), n)
    end
    if log.back == '' then
      log.front, n = cut(log.front, n)
    end
    mend(log)
  end

  -- pay counts the units of a debt that fit at log.at: each of them takes the place of a unit when
  -- that unit leaves the window. append and refill are those of log.lua.
  local function pay(log, append, refill)
    local p, per, at = log.policy, log.per, log.at
    log.owed, log.moved = math.min(log.owed, p.owe), true -- Another policy may have charged more.
    local units = math.min(log.owed, p.count - log.units)
    if units > 0 then -- A receipt came back, or the limit was raised.
      append(log, log.units > 0 and log.newest or at, units)
      log.owed = log.owed - units
    end
    local later_ = {} -- The entries behind the back.

    local function flush()
      log.back, later_ = log.back .. table.concat(later_), {}
    end

    -- turn moves the units of an entry that has left by one window, as far as they are owed.
    local function turn(when, n)
      log.units = log.units - n
      local more = math.min(log.owed, p.count - log.units)
      if more <= 0 then
        return
      end
      log.owed = log.owed - more
      if log.units == 0 or log.newest == when + per then
        flush()
        append(log, when + per, more)
        return
      end
      later_[#later_ + 1] = pack(ENTRY, when + per - log.base, more)
      log.units, log.newest = log.units + more, when + per
    end

    while log.owed > 0 do
      if log.units == p.count and log.newest + per <= at and log.owed >= log.units then
        local rounds = math.min(math.floor(log.owed / log.units), math.floor((at - log.newest) / per))
        log.base, log.newest, log.shifted = log.base + rounds * per, log.newest + rounds * per, true
        log.owed = log.owed - rounds * log.units
      end
      if log.front == '' then
        flush()
      end
      local entries, from = log.front ~= '' and log.front or refill(log, -1), 1
      if not entries then
        break
      end
      local base, gone = log.base, at - per
      while from <= #entries and log.owed > 0 do
        local when, n, to = unpack_(ENTRY, entries, from)
        if when + base > gone then
          log.front = sub(entries, from)
          return flush()
        end
        from = to
        if log.units == n then -- The last entry: append begins anew.
          log.front, log.back, entries, from = '', '', '', 1
        end
        turn(when + base, n)
      end
      if entries ~= '' then
        log.front = sub(entries, from)
      end
    end
    flush()
    if #log.front > INLINE then
      log.front, log.back = sub(log.front, 1, INLINE), sub(log.front, INLINE + 1) .. log.back
    end
  end

  return {
    pay = pay, chunk = chunk, load_front = load_front, trim = trim, save_list = save_list, leaves_at = leaves_at,
    mend = mend, drop_newest = drop_newest, entry = ENTRY,
  }
end

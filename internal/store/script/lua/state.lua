-- The common part of all states: the first byte is the algorithm, and the next eight bytes
-- are the version. A receipt has the version of its state.
--
-- The lower 32 bits of the version count returned units. The upper 12 bits count the events
-- that make earlier receipts invalid: a clock that stepped back, a changed limit, or a
-- forgotten key. The first version of a new state comes from the time, so that it differs
-- from the versions of lost states.
--
-- The 12 upper bits wrap around after 4096 events. later therefore also adds 2^16 to the
-- lower bits. After a wrap, an old receipt sees at least 2^28 returned units, until 2^28
-- events have happened.
local EPOCH, VERSIONS, FORGOTTEN = 4294967296, 17592186044416, 9

local function later(version)
  return (version + EPOCH + 65536) % VERSIONS
end

-- born gives the first version of a new state, which replaces raw if raw is not nil.
local function born(raw, now)
  if raw and #raw >= 9 then
    local kind, version = struct.unpack('<Bd', raw)
    if kind == FORGOTTEN then
      return version
    end
    return later(version)
  end
  return now % 4096 * EPOCH + math.floor(now / 4096) % EPOCH
end

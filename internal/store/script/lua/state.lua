-- What all states have in common: the first byte is the algorithm, and the eight
-- that follow are the version, which a receipt must know to be returned.
--
-- The version counts the units returned since a receipt (its lower 32 bits), and
-- what has voided the receipts from before (its upper 12): a clock that stepped back,
-- a limit that was changed, a key that was forgotten. A new state begins at one that
-- its time of birth tells from those of lost states.
--
-- later moves the lower bits too, so that a version of 12 bits that has come round does
-- not make old receipts valid: then 2^28 units are counted as returned since, or more,
-- until 2^28 changes have been.
local EPOCH, VERSIONS, FORGOTTEN = 4294967296, 17592186044416, 9

local function later(version)
  return (version + EPOCH + 65536) % VERSIONS
end

-- born gives the version of a new state, in the place of raw or of nothing.
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

package guard

import "time"

// machineTime is what the store's budget runs by, as all contexts do. Decisions are
// made by the clocks of the stores.
func machineTime() time.Time { return time.Now() }

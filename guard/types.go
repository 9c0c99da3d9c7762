package guard

import (
	"github.com/headgate/headgate/guard/internal/refusals"
	"github.com/headgate/headgate/guard/internal/wheel"
	"github.com/headgate/headgate/internal/calendar"
	"github.com/headgate/headgate/internal/domain"
	"github.com/headgate/headgate/internal/lease/bucket"
)

// Clock is the time for waiting requests: that of the machine (MachineClock), or of a simulation. A Clock is safe for
// concurrent use. Now gives the monotonic time since an origin that does not change. Alarm makes an alarm that is not
// set, and that calls its function each time it goes off.
type Clock = wheel.Clock

// Alarm calls its function once, as *time.Timer does. Reset sets it to go off in a time, in place of any time set
// before, and Stop lets a set alarm not go off.
type Alarm = wheel.Alarm

// MachineClock returns the machine's monotonic clock, starting now. A Clock that is made in a testing/synctest bubble
// uses the bubble's clock, and must stay in the bubble.
func MachineClock() Clock { return wheel.Machine() }

// Calendar says where the windows of calendar periods begin: the time zone of the days, the first day of the week,
// and the day on which months and years begin. It is comparable. The zero Calendar is UTC, weeks from Sunday and months
// from the first day.
type Calendar = calendar.Settings

// LeaseTable has the capacity leases that rules spend. Package client/lease makes one.
type LeaseTable = bucket.Table

// DomainIndex finds the limit of a descriptor in a Domain.
type DomainIndex = domain.Index

// RefusalStats counts what is remembered of refused counters, and what was decided from it.
type RefusalStats = refusals.Stats

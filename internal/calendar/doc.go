// Package calendar computes the windows of limits such as 200 a month, in any time zone.
//
// A day begins at the first instant whose local date is that day or later. Weeks, months and
// years begin with a day. So each instant belongs to exactly one window, also where a zone
// skips or repeats midnight. A day that a zone skips is an empty window, and [Settings.Edges]
// leaves it out.
//
//	monthly := calendar.New(calendar.Settings{Zone: zone, MonthStarts: 15}, calendar.Month)
//	op := headgate.Op{Key: "customer", Policy: id, Cost: 1, Edges: monthly.Edges(time.Now())}
//
// Time zones come from the system. If it has none, they come from package time/tzdata, which the
// headgate command has, and other programs have if they import it. All functions are pure: time is an argument.
package calendar

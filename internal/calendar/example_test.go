package calendar_test

import (
	"fmt"
	"time"
	_ "time/tzdata" // links the tables of all zones

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/calendar"
)

// The month of a customer in Madrid begins on the 31st, or on the last day of the month.
func ExampleWindows() {
	madrid, err := time.LoadLocation("Europe/Madrid")
	if err != nil {
		fmt.Println(err)
		return
	}
	monthly := calendar.New(calendar.Settings{Zone: madrid, MonthStarts: 31}, calendar.Month)
	now := time.Date(2026, time.March, 10, 12, 0, 0, 0, time.UTC)
	for _, edge := range monthly.Edges(headgate.Instant(now.UnixNano())) {
		fmt.Println(edge.Time().In(madrid).Format(time.RFC1123Z))
	}
	// Output:
	// Sat, 31 Jan 2026 00:00:00 +0100
	// Sat, 28 Feb 2026 00:00:00 +0100
	// Tue, 31 Mar 2026 00:00:00 +0200
	// Thu, 30 Apr 2026 00:00:00 +0200
}

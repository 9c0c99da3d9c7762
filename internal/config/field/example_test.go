package field_test

import (
	"fmt"

	"github.com/headgate/headgate/internal/config/field"
)

// Two configurations are compared: one field differs.
func ExampleFixed_Changed() {
	var started, next field.Fixed
	started.Add("log.format", "json")
	started.Add("max_memory", 1<<20)
	next.Add("log.format", "text")
	next.Add("max_memory", 1<<20)
	for _, path := range started.Changed(&next) {
		fmt.Println(path, "waits for a", field.Restart)
	}
	// Output: log.format waits for a restart
}

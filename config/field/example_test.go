package field_test

import (
	"fmt"

	"github.com/headgate/headgate/config/field"
)

// Two configurations are compared: one field of the section log differs.
func ExampleFixed_Changed() {
	var started, next field.Fixed
	started.Add("log.keys", "log", "hash")
	started.Add("max_memory", "max_memory", 1<<20)
	next.Add("log.keys", "log", "plain")
	next.Add("max_memory", "max_memory", 1<<20)
	for _, setting := range started.Changed(&next) {
		fmt.Println(setting, "waits for a", field.Restart)
	}
	// Output: log waits for a restart
}

package simulation_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/pace/schedule/simulation"
)

// Variation is 0 when each slot of a window has the same number of permits.
func ExampleVariation() {
	w := simulation.Window{Given: []time.Duration{0, 250 * time.Millisecond, 500 * time.Millisecond, 750 * time.Millisecond}}
	counts := w.Slots(time.Second, 500*time.Millisecond)
	fmt.Println(counts, simulation.Variation(counts))
	// Output: [2 2] 0
}

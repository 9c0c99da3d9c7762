package toy

import (
	"testing"

	detector "github.com/headgate/headgate/internal/testkit/race"
	"github.com/headgate/headgate/store/storetest"
)

var rounds = map[bool]int{true: 1, false: 10}[detector.On]

func many() int { return rounds }

func TestThroughTwo(*testing.T) { many() }

func TestDirect(t *testing.T) { t.Log(detector.On) }

func TestFewer(t *testing.T) { t.Log(detector.Fewer(10, 1)) }

func TestSuite(t *testing.T) { storetest.Run(t, nil) }

func TestClock(*testing.T) { _ = storetest.Clock{} }

func TestPlain(*testing.T) {}

func FuzzDirect(f *testing.F) { f.Log(detector.On) }

func ExampleOn() { _ = detector.On }

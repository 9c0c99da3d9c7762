package throttle

import (
	"fmt"
	"strings"
)

// Class is the criticality of a request. A lower value is more critical.
type Class uint8

const (
	// CriticalPlus is for requests whose failure has a serious effect that users see.
	CriticalPlus Class = iota
	// Critical is for requests whose failure users see.
	Critical
	// SheddablePlus is for requests that can wait for minutes, such as batch work.
	SheddablePlus
	// Sheddable is for requests that can be dropped.
	Sheddable
	classCount
)

// ClassCount is the number of classes, and the length of an array that is indexed by Class.
const ClassCount = int(classCount)

var classNames = [classCount]string{"critical_plus", "critical", "sheddable_plus", "sheddable"}

// String returns the name that configuration, headers and metrics use.
func (c Class) String() string {
	if c < classCount {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// critical reports whether the class is one of the two critical ones.
func (c Class) critical() bool { return c <= Critical }

// ParseClass reads the name of a class, in lower or upper case. The two names of systems with
// two classes are known too: critical, and not_critical for Sheddable.
func ParseClass(name string) (Class, error) {
	for i, known := range classNames {
		if strings.EqualFold(name, known) {
			return Class(i), nil
		}
	}
	if strings.EqualFold(name, "not_critical") {
		return Sheddable, nil
	}
	return 0, fmt.Errorf("throttle: %.40q is not a criticality: write critical_plus, critical, sheddable_plus or sheddable", name)
}

package fits_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/store/fits"
)

func ExampleMemcached() {
	err := fits.Memcached(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Minute}})
	fmt.Println(err != nil)
	err = fits.Redis(headgate.Policy{Algorithm: headgate.SlidingLog, Limit: headgate.Limit{Count: 100, Per: time.Minute}})
	fmt.Println(err != nil)
	// Output:
	// true
	// false
}

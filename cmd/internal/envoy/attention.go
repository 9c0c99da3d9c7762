package envoy

import (
	"fmt"

	"github.com/headgate/headgate/cmd/internal/admin"
	"github.com/headgate/headgate/cmd/internal/envoy/statsd"
)

// Attention says which receivers of statsd get no lines.
func (o *OutletsComponent) Attention(add func(admin.Attention)) {
	o.eachReceiver(func(r statsd.Config, sender *statsd.Sender) {
		if problem := sender.Problem(); problem != "" {
			add(admin.Attention{
				Level: admin.LevelWarning, About: "receiver", Name: r.Address,
				Text: fmt.Sprintf("The statsd receiver %s gets no lines, %d are dropped: %s. Check its address and the network.",
					r.Address, sender.Dropped(), problem),
			})
		}
	})
}

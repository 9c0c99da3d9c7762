package rls

import (
	"google.golang.org/grpc/codes"

	"github.com/headgate/headgate/guard/report"
)

// report reports the decisions of a call with the codes of its statuses.
func (c *call) report(to *report.Report) {
	if to == nil {
		return
	}
	for i := range c.requests {
		code := "OK"
		if c.statuses[i].over {
			code = "OVER_LIMIT"
		}
		to.ObserveDescriptor(&c.requests[i], &c.answers[i], code)
	}
}

// reportFault reports the decisions of a call that is answered with an error.
func (c *call) reportFault(to *report.Report, code codes.Code) {
	if to == nil {
		return
	}
	name, known := faultNames[code]
	if !known {
		name = code.String()
	}
	for i := range c.requests {
		if a := &c.answers[i]; a.Error == nil {
			to.ObserveDescriptor(&c.requests[i], a, name)
		}
	}
}

// faultNames has the names of errors in the log, as documents of gRPC write them.
var faultNames = map[codes.Code]string{
	codes.InvalidArgument: "INVALID_ARGUMENT", codes.ResourceExhausted: "RESOURCE_EXHAUSTED", codes.Unavailable: "UNAVAILABLE",
}

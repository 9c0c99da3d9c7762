package config

import (
	"maps"

	"github.com/headgate/headgate/internal/config/source"
)

// readCustomers reads the changed customers, and those that depend on what changed.
func (w *objectChange) readCustomers() {
	again, former := w.customersAgain(), len(w.faults)
	w.readAll(again, nil)
	if most := w.read.majority(); len(w.faults) > former && len(most) > 0 {
		w.faults = w.faults[:former]
		w.readAll(again, most)
	}
	w.checkLimitNames()
	if len(w.faults) == 0 {
		w.addNames()
	}
}

// readAll reads customers. If they disagree about the algorithm of a limit, the one in preferred counts, else that of the
// first customer.
func (w *objectChange) readAll(again []source.Object, preferred map[quotaPeriod]limitUse) {
	w.again = make(map[string]*customerEntry, len(again))
	periods := w.periodsOfOthers(again)
	w.checkPeriods(periods)
	known := periods
	if len(preferred) > 0 {
		known = maps.Clone(periods)
	}
	for at, use := range preferred {
		known[at] = periodUse{use.algorithm, use.number, 0}
	}
	w.read = newCustomerReading(w.next.base, again, known, w.holder)
	for _, object := range again {
		entry, faults := w.read.read(object)
		if len(faults) > 0 {
			w.blame(object, faults)
			continue
		}
		w.again[object.Name] = entry
		for _, use := range entry.form.used {
			known := periods[use.at]
			periods[use.at] = periodUse{use.algorithm, use.number, known.n + 1}
		}
	}
	w.next.periods = periods
}

// periodsOfOthers gives the limits of the customers that are not read again and not deleted.
func (w *objectChange) periodsOfOthers(again []source.Object) map[quotaPeriod]periodUse {
	if w.all {
		return map[quotaPeriod]periodUse{}
	}
	periods := maps.Clone(w.from.periods)
	for _, object := range again {
		if was, known := w.from.customers.get(object.Name); known {
			endUses(periods, was.form)
		}
	}
	for _, key := range w.deleted {
		if was, known := w.from.customers.get(key.Name); known && key.Kind == source.Customer {
			endUses(periods, was.form)
		}
	}
	return periods
}

// endUses removes the limits of a customer.
func endUses(periods map[quotaPeriod]periodUse, form *customerForm) {
	for _, use := range form.used {
		known := periods[use.at]
		if known.n--; known.n > 0 {
			periods[use.at] = known
		} else {
			delete(periods, use.at)
		}
	}
}

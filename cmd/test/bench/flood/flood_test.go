package flood

import "testing"

func TestMeasure(t *testing.T) {
	for _, name := range Names() {
		row, err := Measure(name, 5000)
		if err != nil {
			t.Fatal(err)
		}
		if row.PerKey <= 0 || row.HeapInuse == 0 || row.PeakResident == 0 {
			t.Errorf("%s: got %+v, want positive time and memory", name, row)
		}
		if want := name != "throttled memstore, bounded"; row.Kept != want {
			t.Errorf("%s: got limited key kept %v, want %v", name, row.Kept, want)
		}
	}
	if _, err := Measure("unknown", 1); err == nil {
		t.Error("unknown side: got no error")
	}
}

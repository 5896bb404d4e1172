package ceph

import "testing"

// TestAnOptionOfTheMonitorsIsTheirOwnOrThatOfAllDaemons by the answer of Ceph 16 to `ceph config dump`.
func TestAnOptionOfTheMonitorsIsTheirOwnOrThatOfAllDaemons(t *testing.T) {
	const other = `{"section":"mon","name":"auth_allow_insecure_global_id_reclaim","value":"false","level":"advanced","can_update_at_runtime":true,"mask":""}`
	entry := func(section, value, mask string) string {
		return `{"section":"` + section + `","name":"mon_allow_pool_size_one","value":"` + value + `","level":"advanced","can_update_at_runtime":true,"mask":"` + mask + `"}`
	}
	for name, test := range map[string]struct {
		answer string
		want   Option
		on     bool
	}{
		"nothing":                     {`[]`, Option{}, false},
		"others":                      {`[` + other + `]`, Option{}, false},
		"of all daemons, as by Rook":  {`[` + entry("global", "true", "") + `,` + other + `]`, Option{Value: "true"}, true},
		"their own":                   {`[` + entry("mon", "true", "") + `]`, Option{Value: "true", Own: true}, true},
		"their own before all others": {`[` + entry("global", "true", "") + `,` + entry("mon", "false", "") + `]`, Option{Value: "false", Own: true}, false},
		"of one monitor":              {`[` + entry("mon.a", "true", "") + `]`, Option{}, false},
		"of some":                     {`[` + entry("mon", "true", "host:x") + `]`, Option{}, false},
	} {
		got, err := parseOption([]byte(test.answer), "mon_allow_pool_size_one")
		if err != nil || got != test.want || got.On() != test.on {
			t.Errorf("%s: %v: %+v", name, err, got)
		}
	}
	if _, err := parseOption([]byte("no JSON"), "a"); err == nil {
		t.Error("what cannot be read is read")
	}
}

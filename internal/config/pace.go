package config

import "time"

// Pace are the settings of how often EKCO polls, and how long it watches before it decides.
type Pace struct {
	SettlingTime      time.Duration
	ReconcileInterval time.Duration
	ReconcileTimeout  time.Duration
}

func (p *Pace) keys() []key {
	return []key{
		{
			name: "settling_time", value: &p.SettlingTime, byDefault: "15s", built: true,
			help: "how long EKCO watches after a start, an API outage or a jump of the clock before it decides anything",
		},
		{
			name: "reconcile_interval", value: &p.ReconcileInterval, byDefault: "1m", built: true, check: positive,
			help: "how often to poll what EKCO may not watch; a check that holds an action is first repeated after this time or 5s, whichever is shorter",
		},
		{
			name: "reconcile_timeout", value: &p.ReconcileTimeout, byDefault: "15m",
			help: "limit of one poll; 0 means 15m",
		},
	}
}

func (p *Pace) settle(map[string]bool) {
	if p.ReconcileTimeout == 0 {
		p.ReconcileTimeout = 15 * time.Minute
	}
}

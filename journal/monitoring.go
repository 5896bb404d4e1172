package journal

// ActionScaleMonitoring gives Prometheus or Alertmanager the replicas that the number of
// nodes allows.
const ActionScaleMonitoring ActionKind = "scale-monitoring"

// StepSetReplicas is its step. It leaves the facts of the object as it is then.
const StepSetReplicas = "set-replicas"

// The Prometheus and the Alertmanager that kURL installs.
var (
	MonitoringPrometheus   = Subject{Kind: "Prometheus", Name: "monitoring/k8s"}
	MonitoringAlertmanager = Subject{Kind: "Alertmanager", Name: "monitoring/prometheus-alertmanager"}
)

// MonitoringFacts is what EKCO judges a Prometheus or an Alertmanager by. Generation
// counts the changes of what is asked of it, whoever made them.
type MonitoringFacts struct {
	UID        string `json:"-"`
	Generation int64  `json:"generation"`
	Replicas   int    `json:"replicas"`
}

// Changes counts the changes of what is asked of the object.
func (f MonitoringFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the object with that UID.
func (f MonitoringFacts) Of(uid string) MonitoringFacts {
	f.UID = uid
	return f
}

// MonitoringInput is the input of a scale-monitoring: how many replicas there shall be,
// because there are so many nodes.
type MonitoringInput struct {
	Replicas int `json:"replicas"`
	Nodes    int `json:"nodes"`
}

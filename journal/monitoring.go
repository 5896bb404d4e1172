package journal

// ActionScaleMonitoring scales Prometheus or Alertmanager to the replicas that the number of nodes allows.
const ActionScaleMonitoring ActionKind = "scale-monitoring"

// StepSetReplicas is its step. Its outputs are the facts of the object after it.
const StepSetReplicas = "set-replicas"

// The Prometheus and the Alertmanager that kURL installs.
var (
	MonitoringPrometheus   = Subject{Kind: "Prometheus", Name: "monitoring/k8s"}
	MonitoringAlertmanager = Subject{Kind: "Alertmanager", Name: "monitoring/prometheus-alertmanager"}
)

// MonitoringFacts is what EKCO judges a Prometheus or an Alertmanager by. Generation counts the changes of its spec
// by any client.
type MonitoringFacts struct {
	UID        string `json:"-"`
	Generation int64  `json:"generation"`
	Replicas   int    `json:"replicas"`
}

// Changes counts the changes of the object's spec.
func (f MonitoringFacts) Changes() int64 { return f.Generation }

// Of returns the facts as those of the object with that UID.
func (f MonitoringFacts) Of(uid string) MonitoringFacts {
	f.UID = uid
	return f
}

// MonitoringInput is the input of a scale-monitoring: the replicas, and the number of nodes that they are for.
type MonitoringInput struct {
	Replicas int `json:"replicas"`
	Nodes    int `json:"nodes"`
}

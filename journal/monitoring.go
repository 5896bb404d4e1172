package journal

// ActionScaleMonitoring scales Prometheus or Alertmanager to the number of replicas that fits the number of nodes.
const ActionScaleMonitoring ActionKind = "scale-monitoring"

// StepSetReplicas is the only step of scale-monitoring. Its outputs are the facts about the object after the change.
const StepSetReplicas = "set-replicas"

// The Prometheus and the Alertmanager that kURL installs.
var (
	MonitoringPrometheus   = Subject{Kind: "Prometheus", Name: "monitoring/k8s"}
	MonitoringAlertmanager = Subject{Kind: "Alertmanager", Name: "monitoring/prometheus-alertmanager"}
)

// MonitoringFacts are the facts about a Prometheus or an Alertmanager that decisions use. Generation counts all changes
// of its spec.
type MonitoringFacts struct {
	UID        string `json:"-"`
	Generation int64  `json:"generation"`
	Replicas   int    `json:"replicas"`
}

// Changes returns how often the object's spec was changed.
func (f MonitoringFacts) Changes() int64 { return f.Generation }

// WithUID returns the facts with the UID of the object.
func (f MonitoringFacts) WithUID(uid string) MonitoringFacts {
	f.UID = uid
	return f
}

// MonitoringInput is the input of a scale-monitoring. Nodes is the number of nodes that determined Replicas.
type MonitoringInput struct {
	Replicas int `json:"replicas"`
	Nodes    int `json:"nodes"`
}

module sigs.k8s.io/controller-runtime

go 1.26.0

require k8s.io/apimachinery v0.37.2

// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion and Kind are the values of apiVersion and kind in the configuration file.
const (
	APIVersion = "manager.atoll.dev/v1alpha1"
	Kind       = "ManagerConfiguration"
)

// Configuration is the content of the file.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	Central Central `json:"central,omitempty"`
	// Identity is the name of this replica, different from all others. Default: the environment variable POD_NAME, else a
	// name that is made up at each start.
	Identity        string          `json:"identity,omitempty"`
	Peers           Peers           `json:"peers,omitempty"`
	Fanout          Fanout          `json:"fanout,omitempty"`
	ServiceClusters ServiceClusters `json:"serviceClusters,omitempty"`
	// Clusters lets clusters join the central plane, as SyncTargets, with tokens. Not set: they cannot.
	Clusters *Clusters `json:"clusters,omitempty"`
	// Workloads divides the workloads of the central plane over the clusters of its SyncTargets, by the PlacementPolicies
	// there. Not set: they are not divided.
	Workloads *Workloads `json:"workloads,omitempty"`
	// ClusterDaemonSets runs the ClusterDaemonSets of the central plane on its SyncTargets. Not set: nothing runs them.
	ClusterDaemonSets *ClusterDaemonSets `json:"clusterDaemonSets,omitempty"`
	Log               Log                `json:"log,omitempty"`
	Health            Health             `json:"health,omitempty"`
}

// Central is the central plane, whose objects are the desired state.
type Central struct {
	// KubeconfigFile is the kubeconfig for the plane. Not set: the plane in whose Pod the manager runs.
	KubeconfigFile string `json:"kubeconfigFile,omitempty"`
	// Namespace is the namespace of the installation: of Leases, and of Secrets that Peers name without a namespace.
	// Default: kubecarrier-system.
	Namespace string `json:"namespace,omitempty"`
}

// Peers is how the manager treats the peers.
type Peers struct {
	// ProbeInterval is the time between two probes of a peer that answers. Default: 10s.
	ProbeInterval *metav1.Duration `json:"probeInterval,omitempty"`
	// ExecPlugins are the absolute paths of the credential plugins that kubeconfigs of peers may run. Default: none.
	ExecPlugins []string `json:"execPlugins,omitempty"`
	// Join makes the manager add each new peer to the ring as a member. If it is false, a person adds it, with atollctl peer
	// join. Default: true.
	Join *bool `json:"join,omitempty"`
}

// Fanout is how the manager finishes operations on all peers and repairs their objects.
type Fanout struct {
	// SweepInterval is the time between two sweeps, which end what other processes have left, and repair. Default: 30s.
	SweepInterval *metav1.Duration `json:"sweepInterval,omitempty"`
	// AdoptApplied lets each sweep take the name in all peers for a ServiceCluster that was applied in one of them. If it is
	// false, such a ServiceCluster stays Pending until a person takes the name: atollctl servicecluster adopt. Default: true.
	AdoptApplied *bool `json:"adoptApplied,omitempty"`
}

// ServiceClusters is how the clusters of ServiceClusters are probed. Their kubeconfigs are not trusted.
type ServiceClusters struct {
	// ProbeInterval is the time between two probes of a cluster that answers. Default: 30s.
	ProbeInterval *metav1.Duration `json:"probeInterval,omitempty"`
	// ProbeTimeout bounds a probe. Default: 10s.
	ProbeTimeout *metav1.Duration `json:"probeTimeout,omitempty"`
	// AllowAddresses are addresses that are allowed, such as 127.0.0.1/32, although loopback, link-local, multicast and
	// metadata addresses are refused. Default: none.
	AllowAddresses []string `json:"allowAddresses,omitempty"`
	// DenyAddresses are networks that are refused, such as those of the installation itself: 10.96.0.0/12. Default: none.
	DenyAddresses []string `json:"denyAddresses,omitempty"`
}

// Clusters is how clusters join the central plane with tokens (atollctl cluster token).
type Clusters struct {
	// TokenNamespace is the namespace of tokens. Default: atoll-join.
	TokenNamespace string `json:"tokenNamespace,omitempty"`
	// LongestCertificate is the longest lifetime of a cluster's certificate: 1h or more. Default: 24h.
	LongestCertificate *metav1.Duration `json:"longestCertificate,omitempty"`
}

// Workloads names the types of workloads that the manager divides.
type Workloads struct {
	// Types are the types of Kubernetes to divide, as RESOURCE.GROUP: cronjobs.batch, daemonsets.apps, deployments.apps,
	// jobs.batch, replicasets.apps, replicationcontrollers, statefulsets.apps. Default: deployments.apps.
	Types []string `json:"types,omitempty"`
	// TypeFiles are files with WorkloadTypes, which declare further types. The flag --workload-types adds files. The
	// manager reads them when it starts. Default: none.
	TypeFiles []string `json:"typeFiles,omitempty"`
	// FollowTypes lets WorkloadTypes in the central plane declare further types while the manager runs. Default: true.
	FollowTypes *bool `json:"followTypes,omitempty"`
}

// ClusterDaemonSets configures the loop of ClusterDaemonSets.
type ClusterDaemonSets struct {
	// ClusterLabel is the label by which syncers find the objects of their cluster. Default: workloads.kcp.io/cluster.
	ClusterLabel string `json:"clusterLabel,omitempty"`
}

// Log is what the manager logs, to the standard error.
type Log struct {
	// Level is the verbosity: 0 to 10. Default: 0.
	Level int `json:"level,omitempty"`
	// Format is "json" or "text". Default: json.
	Format string `json:"format,omitempty"`
}

// Health is the server of /livez, /readyz and /metrics, without TLS and authentication.
type Health struct {
	// Address is the address to listen at. Default: ":8081".
	Address string `json:"address,omitempty"`
}

// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

package plans

// Types that run loops.
const (
	aSyncer      = "syncer.Syncer"
	aTargets     = "syncer/targets.Controller"
	aSplitter    = "splitter.Splitter"
	aPlacement   = "splitter/placement.Controller"
	aDaemon      = "splitter/clusterdaemonset.Controller"
	aFleet       = "syncer/crds.Fleet"
	aCoordinator = "fanout.Coordinator"
	aReplicator  = "account.Replicator"
	aController  = "account.Controller"
	aCatalog     = "account.Catalog"
	anArbiter    = "region/claim.Arbiter"
	aProber      = "region/servicecluster.Controller"
	aMaster      = "region/central.Master"
	aPeers       = "region/central.Peers"
	aMember      = "region/shard.Members"
)

const (
	accountsType    = "accounts.catalog.kubecarrier.io"
	clustersType    = "serviceclusters.kubecarrier.io"
	claimsType      = "regionclaims.kubecarrier.io"
	peersType       = "peers.master.kubecarrier.io"
	carriersType    = "kubecarriers.operator.kubecarrier.io"
	leasesType      = "leases.coordination.k8s.io"
	targetsType     = "synctargets.workload.kcp.io"
	deploymentsType = "deployments.apps"
	autoscalersType = "horizontalpodautoscalers.autoscaling"
	daemonsType     = "clusterdaemonsets.splitter.atoll.dev"
	definitionsType = "customresourcedefinitions.apiextensions.k8s.io"
	rolesType       = "roles.rbac.authorization.k8s.io"
	bindingsType    = "rolebindings.rbac.authorization.k8s.io"
)

// fields lists all fields that the loops write, each with the reason. TestWriters fails if no run
// writes a field of the table, or if a run writes a field that is missing.
var fields = []row{
	// A Syncer downstream.
	{"*", created, aSyncer, "atoll-syncer", "an object for the cluster is created there"},
	{"*", deleted, aSyncer, "", "downstream: the object upstream is gone, or is no longer for the cluster; upstream: the object that was born downstream is gone, or OnDownstreamDelete says so"},
	{"*", "metadata.labels[syncer.atoll.dev/owner]", aSyncer, "atoll-syncer", "names the upstream that an object downstream belongs to"},
	{"*", "metadata.annotations[syncer.atoll.dev/origin]", aSyncer, "atoll-syncer", "names the object upstream"},
	{"*", "metadata.annotations[syncer.atoll.dev/uid]", aSyncer, "atoll-syncer", "distinguishes the object upstream from another of its name"},
	{"*", "metadata.annotations[syncer.atoll.dev/applied]", aSyncer, "atoll-syncer", "digest of the applied content: a restart writes nothing"},
	{"*", "spec.*", aSyncer, "atoll-syncer", "the content of the object upstream"},
	{"*", "data", aSyncer, "atoll-syncer", "the content of the object upstream"},
	{"namespaces", created, aSyncer, "atoll-syncer", "an object that is for the cluster needs its namespace there"},
	{"namespaces", deleted, aSyncer, "", "downstream, with NamespaceSync.Delete: the namespace upstream is deleted, and this syncer made this one"},
	{"namespaces", "spec.*", aSyncer, "atoll-syncer", "empty: it is part of the request that creates the namespace"},
	{"namespaces", "metadata.labels[*]", aSyncer, "atoll-syncer", "labels of the namespace upstream that NamespaceSync names"},
	{"namespaces", "metadata.annotations[*]", aSyncer, "atoll-syncer", "annotations of the namespace upstream that NamespaceSync names"},

	// A Syncer upstream.
	{"*", "metadata.finalizers[syncer.atoll.dev/NAME]", aSyncer, "atoll-syncer-NAME", "keeps the object upstream until the one downstream is gone"},
	{"*", "metadata.annotations[unscheduled.syncer.atoll.dev/NAME]", aSyncer, "atoll-syncer-NAME", "how many pods find no node in the cluster"},
	{"*", "status.*", aSyncer, "atoll-syncer-status-NAME", "the status downstream"},
	{"*", "metadata.annotations[status.workload.kcp.io/NAME]", aSyncer, "atoll-syncer-status-NAME", "the status downstream, of an object that is for several clusters"},
	{deploymentsType, "spec.replicas", aSyncer, "atoll-syncer-fields-NAME", "a field that belongs to the downstream, by a Rule with Up"},
	{deploymentsType, "status.conditions[Synced]", aSyncer, "atoll-syncer-condition-NAME", "whether the object is synced, with Conditions"},
	{"*", "metadata.annotations[synced.syncer.atoll.dev/NAME]", aSyncer, "atoll-syncer-condition-NAME", "whether the object is synced, with Conditions, where the type has no conditions"},
	{"*", created, aSyncer, "atoll-syncer-upsync-NAME", "an object that was created downstream is created upstream"},
	{"*", "metadata.labels[syncer.atoll.dev/owner]", aSyncer, "atoll-syncer-upsync-NAME", "names the cluster in which the object was created"},
	{"*", "metadata.annotations[syncer.atoll.dev/origin]", aSyncer, "atoll-syncer-upsync-NAME", "names the object downstream"},
	{"*", "metadata.annotations[syncer.atoll.dev/uid]", aSyncer, "atoll-syncer-upsync-NAME", "distinguishes the object downstream from another of its name"},
	{"*", "metadata.annotations[syncer.atoll.dev/applied]", aSyncer, "atoll-syncer-upsync-NAME", "digest of the applied content"},
	{"*", "spec.*", aSyncer, "atoll-syncer-upsync-NAME", "the content of the object that was created downstream"},
	{"*", "data", aSyncer, "atoll-syncer-upsync-NAME", "the content of the object that was created downstream"},
	{targetsType, "status.*", aSyncer, "atoll-syncer-target", "heartbeat, capacity, types and conditions of the cluster"},

	// targets.Controller.
	{targetsType, "metadata.finalizers[syncer.atoll.dev/synctarget]", aTargets, "atoll-syncer-target", "keeps the SyncTarget until its objects upstream are released"},
	{targetsType, "status.*", aTargets, "atoll-syncer-target", "conditions that no Syncer reports: kubeconfig, installation, missing heartbeat, TypesDefined"},
	{"*", "metadata.finalizers[syncer.atoll.dev/NAME]", aTargets, "atoll-syncer-NAME", "releases objects upstream whose SyncTarget is being deleted"},
	{"*", created, aTargets, "atoll-syncer-install", "the syncer that Pull installs in a cluster"},
	{"*", deleted, aTargets, "", "the objects that Pull installed are deleted with the SyncTarget"},
	{"*", "metadata.labels[syncer.atoll.dev/installation]", aTargets, "atoll-syncer-install", "names the upstream and the SyncTarget that the object was installed for"},
	{"*", "metadata.labels[*]", aTargets, "atoll-syncer-install", "app.kubernetes.io/name, for people"},
	{deploymentsType, "spec.*", aTargets, "atoll-syncer-install", "the syncer's Deployment"},
	{"clusterroles.rbac.authorization.k8s.io", "rules", aTargets, "atoll-syncer-install", "the rights of the syncer in the cluster"},
	{"clusterrolebindings.rbac.authorization.k8s.io", "roleRef", aTargets, "atoll-syncer-install", "the rights of the syncer in the cluster"},
	{"clusterrolebindings.rbac.authorization.k8s.io", "subjects", aTargets, "atoll-syncer-install", "the rights of the syncer in the cluster"},
	{"secrets", "data", aTargets, "atoll-syncer-install", "the kubeconfig of the upstream for the syncer"},

	// A Fleet.
	{definitionsType, created, aFleet, "atoll-types", "a type that the policy pulls or pushes"},
	{definitionsType, "metadata.labels[types.atoll.dev/managed]", aFleet, "atoll-types", "distinguishes definitions that a Fleet made from others"},
	{definitionsType, "metadata.annotations[types.atoll.dev/sources]", aFleet, "atoll-types", "the clusters that define the type"},
	{definitionsType, "spec.*", aFleet, "atoll-types", "the schema that all sources accept"},

	// A Splitter.
	{"*", created, aSplitter, "atoll-splitter", "a shard"},
	{"*", deleted, aSplitter, "", "a shard whose cluster or parent is gone"},
	{"*", "metadata.finalizers[splitter.atoll.dev/shards]", aSplitter, "atoll-splitter", "keeps a parent until its shards are gone"},
	{"*", "metadata.labels[splitter.atoll.dev/parent]", aSplitter, "atoll-splitter", "the parent of a shard, by its UID"},
	{"*", "metadata.annotations[splitter.atoll.dev/parent-name]", aSplitter, "atoll-splitter", "the parent of a shard, by its name"},
	{"*", "metadata.annotations[splitter.atoll.dev/cluster]", aSplitter, "atoll-splitter", "the cluster of a shard"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/template]", aSplitter, "atoll-splitter", "a hash of the parent's template"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/rollout]", aSplitter, "atoll-splitter", "the shard is being rolled out"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/prior]", aSplitter, "atoll-splitter", "what a cluster may still do by earlier specs"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/autoscaler-min]", aSplitter, "atoll-splitter", "while replicas move: how many replicas of the shard its autoscaler may not remove"},
	{"*", "metadata.labels[workloads.kcp.io/cluster]", aSplitter, "atoll-splitter", "the cluster of a shard, for its syncer"},
	{deploymentsType, "metadata.finalizers[syncer.atoll.dev/NAME]", aSplitter, "atoll-splitter", "a shard is created with the finalizer of its syncer, with Finalize"},
	{"*", "spec.*", aSplitter, "atoll-splitter", "the content of the parent, with the share of the cluster"},
	{deploymentsType, "spec.replicas", aSplitter, "atoll-splitter", "the share of the cluster; in a parent with an autoscaler, the sum that the parts of the autoscaler want"},
	{autoscalersType, "spec.minReplicas", aSplitter, "atoll-splitter", "the part of the cluster, which also holds the replicas that move to the cluster"},
	{autoscalersType, "spec.maxReplicas", aSplitter, "atoll-splitter", "the part of the cluster"},
	{"*", "status.*", aSplitter, "atoll-splitter", "the status of a parent: that of its shards, folded"},

	// A placement Controller.
	{"*", "metadata.annotations[splitter.atoll.dev/placement]", aPlacement, "atoll-placement", "the clusters that were chosen"},
	{"*", "metadata.annotations[splitter.atoll.dev/placed-by]", aPlacement, "atoll-placement", "the policy that chose the clusters"},
	{"*", "metadata.annotations[splitter.atoll.dev/leaving]", aPlacement, "atoll-placement", "clusters that keep the object until others have it"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/division]", aPlacement, "atoll-placement", "how a Splitter divides replicas over the chosen clusters"},
	{"configmaps", "metadata.labels[state.workload.kcp.io/NAME]", aPlacement, "atoll-placement", "a dependent is synced to the clusters of its workload"},
	{"placementpolicies.splitter.atoll.dev", "status.*", aPlacement, "atoll-placement", "the result of the policy"},
	{"clusterplacementpolicies.splitter.atoll.dev", "status.*", aPlacement, "atoll-placement", "the result of the policy"},

	// A clusterdaemonset Controller.
	{deploymentsType, created, aDaemon, "atoll-clusterdaemonset", "a ClusterDaemonSet runs in the cluster"},
	{deploymentsType, deleted, aDaemon, "", "the cluster is no longer chosen, or the ClusterDaemonSet is gone"},
	{deploymentsType, "metadata.labels[splitter.atoll.dev/clusterdaemonset]", aDaemon, "atoll-clusterdaemonset", "the ClusterDaemonSet, by its UID"},
	{deploymentsType, "metadata.labels[workloads.kcp.io/cluster]", aDaemon, "atoll-clusterdaemonset", "the cluster, for its syncer"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/parent-name]", aDaemon, "atoll-clusterdaemonset", "the ClusterDaemonSet, by its name"},
	{deploymentsType, "metadata.annotations[splitter.atoll.dev/cluster]", aDaemon, "atoll-clusterdaemonset", "the cluster"},
	{deploymentsType, "spec.*", aDaemon, "atoll-clusterdaemonset", "the template of the ClusterDaemonSet"},
	{daemonsType, "metadata.finalizers[splitter.atoll.dev/shards]", aDaemon, "atoll-clusterdaemonset", "keeps the ClusterDaemonSet until its Deployments are gone"},
	{daemonsType, "status.*", aDaemon, "atoll-clusterdaemonset", "how many clusters run it"},

	// A Coordinator.
	{accountsType, created, aCoordinator, "atoll-fanout", "the reservation in each peer"},
	{accountsType, deleted, aCoordinator, "", "the Account is removed, or the addition aborted"},
	{accountsType, "metadata.finalizers[fanout.atoll.dev/primary]", aCoordinator, "atoll-fanout", "keeps the primary until no peer has a replica"},
	{accountsType, "metadata.annotations[atoll.dev/origin]", aCoordinator, "atoll-fanout", "the Account of a central plane that this one is the copy of: part of the payload that a Replicator hands over"},
	{accountsType, "spec.fanout.claim", aCoordinator, "atoll-fanout", "which operation has the name, and in which role"},
	{accountsType, "spec.fanout.history", aCoordinator, "atoll-fanout", "the operations that the object has seen"},
	{accountsType, "spec.fanout.home", aCoordinator, "atoll-fanout", "which peer has the primary"},
	{accountsType, "spec.fanout.removal", aCoordinator, "atoll-fanout", "the removal that has begun"},
	{accountsType, "spec.fanout.revision", aCoordinator, "atoll-fanout", "the revision that is in effect"},
	{accountsType, "spec.fanout.stage", aCoordinator, "atoll-fanout", "reserved or in effect"},
	{accountsType, "spec.roles", aCoordinator, "atoll-fanout", "the payload of a replica; that of a primary is handed to the requester's manager at the commit"},
	{accountsType, "spec.subjects", aCoordinator, "atoll-fanout", "the payload, as spec.roles"},
	{clustersType, created, aCoordinator, "atoll-fanout", "the reservation in each peer"},
	{clustersType, deleted, aCoordinator, "", "the ServiceCluster is removed, or the addition aborted"},
	{clustersType, "metadata.annotations[fanout.atoll.dev/guard]", aCoordinator, "atoll-fanout", "shows people that the object is a guard"},
	{clustersType, "spec.fanout.claim", aCoordinator, "atoll-fanout", "which operation has the name, and in which role"},
	{clustersType, "metadata.finalizers[fanout.atoll.dev/primary]", aCoordinator, "atoll-fanout", "keeps the primary until no peer has a guard"},
	{clustersType, "spec.fanout.bound", aCoordinator, "atoll-fanout", "the UID of the primary that a guard is for"},
	{clustersType, "spec.fanout.removal", aCoordinator, "atoll-fanout", "the removal that has begun"},
	{clustersType, "spec.fanout.stage", aCoordinator, "atoll-fanout", "reserved or in effect"},
	{clustersType, "spec.kubeconfigSecret", aCoordinator, "atoll-fanout", "the payload, until it is handed to the requester's manager at the commit"},
	{"peersets.fanout.atoll.dev", "spec.*", aCoordinator, "atoll-fanout", "the members of the ring, and the notes of each about the others"},
	{"operations.fanout.atoll.dev", created, aCoordinator, "atoll-log", "an entry of a log in a central plane"},
	{"operations.fanout.atoll.dev", "metadata.labels[fanout.atoll.dev/state]", aCoordinator, "atoll-log", "selects open entries"},
	{"operations.fanout.atoll.dev", "spec.*", aCoordinator, "atoll-log", "the entry"},

	// Accounts.
	{accountsType, "metadata.finalizers[atoll.dev/replicated]", aReplicator, "atoll-replicator", "keeps an Account of a central plane until no peer has it"},
	{accountsType, "status.*", aReplicator, "atoll-replicator", "the state of the Account in all peers"},
	{accountsType, "status.*", aController, "atoll-account", "whether the namespace and the Roles of the Account exist"},
	{accountsType, "status.*", aCoordinator, "atoll-account", "whether the namespace and the Roles of the Account exist, before an addition is reported as done: account.Kind"},
	{"namespaces", created, aController, "atoll-account", "the namespace of an Account"},
	{"namespaces", created, aCoordinator, "atoll-account", "the namespace of an Account: account.Kind"},
	{"namespaces", deleted, aCoordinator, "", "the Account is removed: account.Kind"},
	{"namespaces", "spec.*", aController, "atoll-account", "empty: it is part of the request that creates the namespace"},
	{"namespaces", "spec.*", aCoordinator, "atoll-account", "empty: it is part of the request that creates the namespace"},
	{"namespaces", "metadata.labels[kubecarrier.io/account]", aController, "atoll-account", "the Account of the namespace"},
	{"namespaces", "metadata.labels[kubecarrier.io/account]", aCoordinator, "atoll-account", "the Account of the namespace"},
	{rolesType, "*", aController, "atoll-account", "the rights of the Account's subjects"},
	{rolesType, "*", aCoordinator, "atoll-account", "the rights of the Account's subjects: account.Kind"},
	{rolesType, "metadata.labels[kubecarrier.io/account-role]", aController, "atoll-account", "distinguishes the Roles of Accounts from others"},
	{rolesType, "metadata.labels[kubecarrier.io/account-role]", aCoordinator, "atoll-account", "distinguishes the Roles of Accounts from others"},
	{rolesType, deleted, aController, "", "a role that the Account no longer has"},
	{rolesType, deleted, aCoordinator, "", "a role that the Account no longer has"},
	{bindingsType, "*", aController, "atoll-account", "the rights of the Account's subjects"},
	{bindingsType, "*", aCoordinator, "atoll-account", "the rights of the Account's subjects: account.Kind"},
	{bindingsType, deleted, aController, "", "a role or a subject that the Account no longer has"},
	{bindingsType, deleted, aCoordinator, "", "a role or a subject that the Account no longer has"},
	{"regions.catalog.kubecarrier.io", "*", aCatalog, "atoll-catalog", "a region that a tenant may use"},
	{"regions.catalog.kubecarrier.io", "metadata.labels[kubecarrier.io/published]", aCatalog, "atoll-catalog", "distinguishes Regions that a Catalog made from others"},
	{"regions.catalog.kubecarrier.io", deleted, aCatalog, "", "a region that the tenant may no longer use"},

	// Regions and peers.
	{claimsType, created, anArbiter, "atoll-region-claim", "a ServiceCluster without a claim gets one"},
	{claimsType, deleted, anArbiter, "", "the ServiceCluster that it was made for is gone"},
	{claimsType, "spec.*", anArbiter, "atoll-region-claim", "empty: it is part of the request that creates the claim"},
	{claimsType, "metadata.ownerReferences", anArbiter, "atoll-region-claim", "the ServiceCluster that the claim was made for"},
	{claimsType, "status.*", anArbiter, "atoll-region-claim", "the holder of the region"},
	{clustersType, "status.*", anArbiter, "atoll-region-claim", "whether the ServiceCluster's region is this peer's"},
	{clustersType, "status.*", aProber, "atoll-service-cluster", "whether the name is claimed and the cluster answers, its version, and the phase while the region is bound"},
	{leasesType, "*", anArbiter, "atoll-region-claim", "the decision on a region, in the plane"},
	{leasesType, "metadata.labels[claim.atoll.dev/decision]", anArbiter, "atoll-region-claim", "distinguishes decisions from other Leases"},
	{leasesType, "metadata.annotations[claim.atoll.dev/region]", anArbiter, "atoll-region-claim", "the region that is decided on"},
	{leasesType, "metadata.annotations[claim.atoll.dev/uid]", anArbiter, "atoll-region-claim", "the claim that holds it"},
	{leasesType, deleted, anArbiter, "", "the region has no claim"},
	{carriersType, "status.*", aMaster, "atoll-central", "whether the plane is a master"},
	{peersType, created, aMaster, "atoll-central", "the Peer of the plane itself"},
	{peersType, "spec.*", aMaster, "atoll-central", "empty: it is part of the request that creates it"},
	{peersType, "status.*", aPeers, "atoll-central", "whether the peer is reachable, and the regions that it serves"},
	{leasesType, "*", aMember, "atoll-shard", "a replica that shares keys is alive"},
	{leasesType, "metadata.labels[region.atoll.dev/shard-group]", aMember, "atoll-shard", "the program that the replica is one of"},
	{leasesType, deleted, aMember, "", "a replica that has ended"},
}

// turns lists the fields that several loops write.
var turns = []turn{
	{"*", "metadata.finalizers[syncer.atoll.dev/NAME]", "Each target has its own. A Splitter with Finalize creates a shard with it and keeps it while it exists; the Syncer " +
		"removes it, by resourceVersion. A targets.Controller removes it when the SyncTarget is being deleted and its Syncer has ended."},
	{deploymentsType, "*", "Never one object. A Splitter writes shards upstream, a clusterdaemonset.Controller the Deployments with its label, a Syncer objects downstream and, upstream, those that were created downstream, which belong to no parent; " +
		"a targets.Controller writes the syncer's Deployment, in a namespace that nothing is synced into."},
	{deploymentsType, "spec.replicas", "Never one object, as the rest of the spec. A Rule with Up writes upstream the fields that the downstream owns. It leaves out the replicas of a shard, which a Splitter owns."},
	{autoscalersType, "*", "Never one object. A Splitter writes the parts of an autoscaler upstream, a Syncer objects downstream."},
	{autoscalersType, "status.*", "Never one object. A Syncer writes the status of parts, a Splitter that of the autoscalers which it divides."},
	{deploymentsType, "status.*", "Never one object. A Syncer writes the status of objects for a cluster, which includes shards; a Splitter writes that of parents, which are for no cluster: an object with the label of a cluster is not divided."},
	{accountsType, "status.*", "In a central plane that is no peer only a Replicator. In a peer a Controller and a Coordinator call one function on the object in the peer, under one manager and by resourceVersion, and write " +
		"only differences. If the central plane is a peer, only the Replicator writes Ready, phase and observedGeneration there."},
	{"namespaces", "*", "Never one object but that of an Account: a Controller and a Coordinator create it with the same request, and only a Coordinator deletes it. " +
		"A Syncer and a targets.Controller write those with their own label."},
	{rolesType, "*", "A Controller and a Coordinator call one function on the Account that the peer holds, under one manager, and write only differences."},
	{bindingsType, "*", "As of Roles."},
	{clustersType, "status.*", "Each condition has one writer: RegionBound is the Arbiter's, the others are the servicecluster.Controller's. While the region is not bound the Arbiter owns the phase and the observed " +
		"generation, and the Controller leaves them out; while it is bound the Controller writes them, and the Arbiter leaves them out as soon as it sees another manager on the phase. Both derive the phase by one function, and write by resourceVersion."},
	{leasesType, "*", "Never one object: an Arbiter writes those with the label claim.atoll.dev/decision, Members those with region.atoll.dev/shard-group."},
	{targetsType, "status.*", "One manager, which owns the whole status: each applies the status as it read it, with its own conditions changed, by resourceVersion, and reads again after a conflict. " +
		"A targets.Controller writes Ready and Reachable only while no Syncer reports; heartbeat, capacity and types are the Syncer's."},
}

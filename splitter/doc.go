// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splitter divides workloads over clusters, and combines the status of the parts into one.
//
// [Divide] gives replicas to clusters by one rule: the divisor method of Webster and Sainte-Laguë,
// within minima, maxima and room, starting from the present replicas, over any number of levels of
// regions and zones. The result is a [Plan]: the replicas of each cluster, the unplaced replicas, and
// the reasons.
//
//	plan, err := splitter.Divide(splitter.Demand{Replicas: 15, UID: deployment.UID}, []splitter.Share{
//		{Name: "cluster-1", Weight: new(int64(2)), Present: 6},
//		{Name: "cluster-2", Weight: new(int64(3)), Capacity: new(int64(40))},
//	})
//
// A [Splitter] divides the workloads in an API server: each parent, a Deployment for instance, gets
// one shard per cluster. A shard is an object of the same kind, named PARENT--CLUSTER and labelled
// for that cluster's syncer. The Splitter computes the parent's status from the status of its shards.
// A [Kind] knows the fields of one type of workload, a [Placement] selects the clusters of a parent,
// and [Clusters] lists the clusters.
//
//	split, err := splitter.New(api, splitter.SyncTargets(api), splitter.Options{})
//	err = split.Start(ctx)
//
// Without Options.Place the Splitter divides over all clusters. Package placement has a Placement
// that follows PlacementPolicies.
//
// With Options.Followers the Splitter also divides objects that belong to workloads,
// PodDisruptionBudgets and HorizontalPodAutoscalers: see [DisruptionBudgets] and [Autoscalers].
//
// A syncer puts its finalizer on each shard before it creates a downstream object. With
// [Options].Finalize the Splitter creates shards with that finalizer, which saves the syncer's write.
//
// Guaranteed of a division, apart from the replicas that Demand.Moves lets it move. [Divide] lists
// the exceptions; docs/division.md lists the tests and compares other methods.
//   - Placed and unplaced replicas add up to the demand, except with Duplicate. No cluster gets more
//     replicas than its maximum and its room allow. A cluster gets fewer than its minimum only if the
//     demand or the room is too small.
//   - A higher demand never reduces a cluster, and a lower one never increases a cluster.
//   - A cluster that joins only takes replicas, and one that leaves only gives them. No replica moves
//     between the other clusters.
//   - Replicas move only if bounds force it or Demand.Moves allows it, or if there are too few
//     replicas for all minima.
//   - Between equal claims, Divide decides in the same way each time for one object, and evenly over
//     many objects.
//   - Numbers are integers, without overflow or rounding errors. The order of the input does not
//     matter.
//
// Guaranteed of a Splitter:
//   - Shards follow the changes of their parent. The Splitter repairs a shard that another client
//     changes or deletes, and deletes all shards before the parent is gone.
//   - Apart from the parents, the Splitter changes and deletes only objects whose labels mark them as
//     shards of a parent, by the parent's UID. It leaves alone any other object with a shard's name,
//     even one created at the same moment, and reports that name in the parent's condition Placed. It
//     does not divide a parent that a label already assigns to a cluster.
//   - A shard that could not be read does not count as absent. An unreachable cluster keeps its
//     replicas for Options.Grace and gets no new ones; its shards count with their last status. The
//     Splitter continues to balance parents that have no shard in that cluster. While many clusters
//     are unready, these lose their replicas one after another: see [Periods]. While no cluster is
//     ready, all clusters keep their replicas.
//   - All clusters of a Deployment share its maxUnavailable and maxSurge, percentages included: see
//     package rollout. A new template, scaling, moves, drains and lost clusters together bring the
//     available replicas to (replicas - maxUnavailable) at the least, and the pods to (replicas +
//     maxSurge) at the most. Unavailable replicas count, in any cluster and for any reason.
//     [Rollout] sets the order of the clusters and how many roll at the same time. Excepted are the
//     strategy Recreate, the mode Duplicate, and a Deployment whose replicas are all in one cluster:
//     there the cluster's controller has the whole budget.
//   - All clusters of the workloads that a disruption budget selects share it, if DisruptionBudgets are
//     among Options.Followers. All clusters together evict at most as many replicas as the budget
//     allows to be unavailable. Replicas that are missing count, and so do those without a place. Each cluster
//     with cordoned nodes has a part of the budget within a round of turns (Options.Turn).
//   - All clusters of a workload that an autoscaler targets share it, if Autoscalers are among
//     Options.Followers. The minReplicas of its parts add up to those of the autoscaler, and so do the
//     maxReplicas, minus the replicas in clusters that the workload leaves. Whatever moves, the clusters
//     together do not have fewer replicas than minReplicas. They have more than maxReplicas only while
//     replicas move: at most maxSurge for a cluster that the workload leaves, and at most the moved
//     minReplicas for a cluster that joins. A workload that leaves a cluster has its replicas elsewhere
//     first, whatever the load there is.
//   - A replica leaves a cluster only when enough others are available: the Splitter never removes so
//     many that the parent's own maxUnavailable is exceeded. No move begins before the previous move
//     is done. If a cluster has more replicas than its share, unavailable replicas above that share
//     delay no move. A rollout of a Deployment delays all moves, also while the rollout is paused or
//     stuck.
//   - No room is assigned twice. A cluster gets new replicas only if their requests fit into its
//     capacity, beside all shards of all Kinds and the replicas that are still to arrive there, in
//     each resource whose capacity is known: cpu, memory, pods, ephemeral storage, extended
//     resources. Room returns when a shard is observed to be smaller or gone. Then the parents that
//     lack room are divided again. ConditionPlaced names the clusters and the scarce resources.
//   - Losing a node moves no replicas, even if the cluster then has too little room. When a node
//     joins, the cluster can get its share.
//   - After a start, no replicas are placed in a cluster with a known capacity before the shards of
//     all Kinds have been listed once: they use room. A type that the server does not serve has none.
//   - A SyncTarget whose weight cannot be read counts as one without a weight, and delays no parent.
//   - The parent's observedGeneration equals its generation only when every cluster has observed its
//     shard's generation.
//   - The Splitter writes nothing when nothing differs, also not after a restart. It makes no plan
//     for a parent before the cache shows all of its earlier writes to the parent and its shards.
//
// Not guaranteed:
//   - That the Splitter takes a delayed write into account. Such a write removes replicas, and the
//     API server carries it out too late: after the Splitter looked for the write with a live read,
//     or after the Splitter's process died and the next process filled its cache. The write fails if
//     its shard has changed in the meantime.
//   - That pods which fail during a rollout stay within the budget: the Splitter takes back the rest
//     of the budget from the clusters, but a cluster may use it until it observes that.
//   - That a disruption budget holds for pods that fail in one cluster while pods of another are evicted:
//     the Splitter takes back the parts of the budget from the other clusters, but a cluster may use its part
//     until it observes that. Nor does it hold in a cluster whose shard of the workload was created before
//     its shard of the budget. An unreachable cluster that has not observed its part delays the others until
//     Options.Grace.
//   - That an autoscaler keeps its maxReplicas for the moment until a cluster has a changed part: controllers
//     of autoscalers do not report which bounds they have observed. An unreachable cluster that has not
//     observed its part delays the others until Options.Grace.
//   - That replicas of an autoscaled workload run elsewhere before a cluster removes them because its bound
//     (Share.Max) has fallen: the cluster's autoscaler removes them, and the others add replicas by load.
//   - That evictions other than those of drains succeed in a cluster without a part of the budget.
//   - That a drain ends while a rollout is stuck whose pods use up maxSurge. Set Rollout.MoveSurge, or
//     correct the template.
//   - That scaling down or draining during a rollout removes unavailable replicas first: a
//     Deployment's controller removes old and new pods in proportion.
//   - That a StatefulSet, or a declared kind without UnreadyFirst, in several clusters is scaled down while some of
//     its replicas are unavailable. A cluster may remove any replica, so the Splitter waits until
//     enough others are available. In one cluster it does not wait.
//   - That replicas of other kinds than Deployments count as unavailable if they were removed from a
//     cluster and added again before the cluster reported the removal: the last report counts.
//   - That a workload is balanced while a replica that stays in its cluster never becomes available.
//     Clusters still drain, as far as the available replicas allow.
//   - That each cluster gets its quota rounded down or up. No divisor method can promise that
//     together with the properties above; the distance is rarely more than one replica.
//   - That pods of a StatefulSet keep their ordinals or volumes when they move. So those with volumes
//     do not move by default: see [StatefulSets].
//   - That a parent's status distinguishes replicas without a node from replicas that are not ready
//     yet, unless the syncers count replicas without a node (syncer.Options.Unscheduled). Then
//     [ConditionScheduled] names the clusters by their last report. Other conditions name a cluster
//     by the reports of its controllers: Available, Progressing and ReplicaFailure of a Deployment,
//     Available of a StatefulSet, FailureTarget and Failed of a Job. DaemonSets have counters only.
//     CronJobs, kinds made by ByPaths and declared kinds without AddScheduled have no
//     ConditionScheduled: only their shards have the annotation.
//   - That a workload runs only once while a cluster is lost: its replicas continue to run there, and
//     after Options.Grace they are placed elsewhere too. [ConditionDuplicated] reports their number
//     until the cluster's syncer has removed them; only Deployments, StatefulSets, ReplicaSets,
//     ReplicationControllers, Jobs and declared kinds with AddDuplicated have this condition. Only the syncer can keep a returning cluster from starting anything before the
//     removal: see syncer.Options.Lease.
//   - That a cluster is drained when no other has room: as many replicas leave as may be unavailable,
//     and the rest stays. A CronJob, and a Job whose indexes are not divided, leaves the cluster
//     anyway and runs nowhere until there is room. Only Observer.Divided reports that a Job or
//     CronJob is unplaced.
//   - That pods which get room find a node. The sum does not count pods that do not come from a shard, such
//     as those of kube-system, of ClusterDaemonSets and of other Splitters. During a rollout it does not
//     count the pods above the desired number, nor the requests of the old template. It does not count
//     pods that still terminate, replicas that an autoscaler has added in a cluster and not reported yet,
//     and requests that admission in the cluster adds. It also ignores how pods fit on single nodes, and
//     their node selectors, affinity and taints.
//   - That a resource without a capacity limits anything. So a cluster in which no node ever had GPUs
//     gets pods that request some, unless spec.capacity of its SyncTarget sets them to zero.
//   - That present replicas fit: they stay if the capacity falls or a new template requests more.
//   - That parents get room in a certain order. Those that wait for a cluster are divided again in the
//     order in which they began to wait, as many as fit. Small requests can use up the room that a
//     large one waits for, and a new parent can come first.
//   - That a DaemonSet is placed by its requests. Its pods count as its shards report them. A replica of
//     a declared type counts as one pod of each of its templates, a CronJob as one Job, and a
//     replica of any other Kind as one pod of spec.template.
//   - Anything if workload controllers run on the parents' API server: those controllers would act on
//     parents and shards alike.
package splitter

package catalog

import (
	"maps"
	"slices"
	"strconv"
)

// Kind implements Command.
func (NewTerm) Kind() Kind { return KindNewTerm }

// Kind implements Command.
func (ActivateIncarnation) Kind() Kind { return KindActivateIncarnation }

// Kind implements Command.
func (SetLimits) Kind() Kind { return KindSetLimits }

// Kind implements Command.
func (SetFeatureLevel) Kind() Kind { return KindSetFeatureLevel }

// Kind implements Command.
func (Checksum) Kind() Kind { return KindChecksum }

// Kind implements Command.
func (AnnounceMember) Kind() Kind { return KindAnnounceMember }

// Kind implements Command.
func (ForgetMember) Kind() Kind { return KindForgetMember }

// Kind implements Command.
func (CreateDatabase) Kind() Kind { return KindCreateDatabase }

// Kind implements Command.
func (AlterDatabase) Kind() Kind { return KindAlterDatabase }

// Kind implements Command.
func (DropDatabase) Kind() Kind { return KindDropDatabase }

// Kind implements Command.
func (CreateTable) Kind() Kind { return KindCreateTable }

// Kind implements Command.
func (AlterTable) Kind() Kind { return KindAlterTable }

// Kind implements Command.
func (RescaleTable) Kind() Kind { return KindRescaleTable }

// Kind implements Command.
func (DropTable) Kind() Kind { return KindDropTable }

// Kind implements Command.
func (CreatePartitions) Kind() Kind { return KindCreatePartitions }

// Kind implements Command.
func (DropPartitions) Kind() Kind { return KindDropPartitions }

// Kind implements Command.
func (ImportBatch) Kind() Kind { return KindImportBatch }

// Kind implements Command.
func (RegisterServer) Kind() Kind { return KindRegisterServer }

// Kind implements Command.
func (RenewLeases) Kind() Kind { return KindRenewLeases }

// Kind implements Command.
func (ExpireServers) Kind() Kind { return KindExpireServers }

// Kind implements Command.
func (UnregisterServer) Kind() Kind { return KindUnregisterServer }

// Kind implements Command.
func (TagServer) Kind() Kind { return KindTagServer }

// Kind implements Command.
func (AssignPending) Kind() Kind { return KindAssignPending }

// Kind implements Command.
func (AdjustISR) Kind() Kind { return KindAdjustISR }

// Kind implements Command.
func (ElectLeaders) Kind() Kind { return KindElectLeaders }

// Kind implements Command.
func (Reassign) Kind() Kind { return KindReassign }

// Kind implements Command.
func (StartRebalance) Kind() Kind { return KindStartRebalance }

// Kind implements Command.
func (StepRebalance) Kind() Kind { return KindStepRebalance }

// Kind implements Command.
func (CancelRebalance) Kind() Kind { return KindCancelRebalance }

// Kind implements Command.
func (AckDeletion) Kind() Kind { return KindAckDeletion }

// Kind implements Command.
func (PurgeDropped) Kind() Kind { return KindPurgeDropped }

// Kind implements Command.
func (RegisterClient) Kind() Kind { return KindRegisterClient }

// Kind implements Command.
func (ExpireClients) Kind() Kind { return KindExpireClients }

// Kind implements Command.
func (PutKV) Kind() Kind { return KindPutKV }

// Kind implements Command.
func (DeleteKV) Kind() Kind { return KindDeleteKV }

// Kind implements Command.
func (TxnKV) Kind() Kind { return KindTxnKV }

// Kind implements Command.
func (AllocateIDs) Kind() Kind { return KindAllocateIDs }

var kindNames = map[Kind]string{
	KindNewTerm:             "NewTerm",
	KindActivateIncarnation: "ActivateIncarnation",
	KindSetLimits:           "SetLimits",
	KindSetFeatureLevel:     "SetFeatureLevel",
	KindChecksum:            "Checksum",
	KindAnnounceMember:      "AnnounceMember",
	KindForgetMember:        "ForgetMember",
	KindCreateDatabase:      "CreateDatabase",
	KindAlterDatabase:       "AlterDatabase",
	KindDropDatabase:        "DropDatabase",
	KindCreateTable:         "CreateTable",
	KindAlterTable:          "AlterTable",
	KindRescaleTable:        "RescaleTable",
	KindDropTable:           "DropTable",
	KindCreatePartitions:    "CreatePartitions",
	KindDropPartitions:      "DropPartitions",
	KindImportBatch:         "ImportBatch",
	KindRegisterServer:      "RegisterServer",
	KindRenewLeases:         "RenewLeases",
	KindExpireServers:       "ExpireServers",
	KindUnregisterServer:    "UnregisterServer",
	KindTagServer:           "TagServer",
	KindAssignPending:       "AssignPending",
	KindAdjustISR:           "AdjustISR",
	KindElectLeaders:        "ElectLeaders",
	KindReassign:            "Reassign",
	KindStartRebalance:      "StartRebalance",
	KindStepRebalance:       "StepRebalance",
	KindCancelRebalance:     "CancelRebalance",
	KindAckDeletion:         "AckDeletion",
	KindPurgeDropped:        "PurgeDropped",
	KindRegisterClient:      "RegisterClient",
	KindExpireClients:       "ExpireClients",
	KindPutKV:               "PutKV",
	KindDeleteKV:            "DeleteKV",
	KindTxnKV:               "TxnKV",
	KindAllocateIDs:         "AllocateIDs",
}

// String returns the command's name, as RescaleTable.
func (k Kind) String() string {
	if n, ok := kindNames[k]; ok {
		return n
	}
	return "Kind" + strconv.Itoa(int(k))
}

// Kinds returns every kind this build knows, in ascending order. The slice is
// the caller's.
func Kinds() []Kind { return slices.Sorted(maps.Keys(kindNames)) }

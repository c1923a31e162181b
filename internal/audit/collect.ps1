# Writes what fullpipe audits about this host, as JSON on standard output. It changes
# nothing and needs no privileges:
#     powershell -ExecutionPolicy Bypass -File collect.ps1 > host.json;  fullpipe audit host.json
# Windows 8, Server 2012 and later; older systems without the cmdlets give the registry alone.
$ErrorActionPreference = 'SilentlyContinue'
$values = [ordered]@{}
$unread = @()

# Enumerations are written as words: their numbers differ between versions, and netsh's
# text follows the system's language.
function Add($name, $value) { if ($null -ne $value -and "$value" -ne '') { $values[$name] = "$value" } }

$tcpip = 'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters'
foreach ($name in 'TcpWindowSize', 'GlobalMaxTcpWindowSize', 'Tcp1323Opts', 'EnablePMTUDiscovery', 'SackOpts') {
    Add $name (Get-ItemProperty -Path $tcpip -Name $name).$name
}
foreach ($name in 'DefaultSendWindow', 'DefaultReceiveWindow') {
    Add $name (Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Services\AFD\Parameters' -Name $name).$name
}
foreach ($interface in Get-ChildItem "$tcpip\Interfaces") {
    foreach ($name in 'TcpWindowSize', 'TcpAckFrequency', 'TCPNoDelay', 'MTU') {
        Add "Interfaces/$($interface.PSChildName)/$name" (Get-ItemProperty -Path $interface.PSPath -Name $name).$name
    }
}

$templates = Get-NetTCPSetting
if (-not $templates) { $unread += 'Get-NetTCPSetting: no such cmdlet, or no answer' }
foreach ($template in $templates) {
    foreach ($name in 'AutoTuningLevelLocal', 'AutoTuningLevelGroupPolicy', 'AutoTuningLevelEffective', 'ScalingHeuristics',
        'CongestionProvider', 'InitialCongestionWindow', 'InitialRto', 'MinRto', 'DelayedAckTimeout', 'Timestamps',
        'EcnCapability', 'MemoryPressureProtection', 'ForceWS', 'CwndRestart', 'AutomaticUseCustom', 'MaxSynRetransmissions') {
        $property = switch ($name) {
            'InitialCongestionWindow' { 'InitialCongestionWindowMss' }
            'InitialRto' { 'InitialRtoMs' }
            'MinRto' { 'MinRtoMs' }
            'DelayedAckTimeout' { 'DelayedAckTimeoutMs' }
            default { $name }
        }
        $value = $template.$property
        if ($null -eq $value) { $value = $template.$name }
        Add "$($template.SettingName)/$name" $value
        if ($template.SettingName -eq 'Internet') { Add $name $value }
    }
}
$offload = Get-NetOffloadGlobalSetting
Add 'Chimney' $offload.Chimney
Add 'ReceiveSegmentCoalescing' $offload.ReceiveSegmentCoalescing

$interfaces = @()
foreach ($adapter in Get-NetAdapter | Where-Object { "$($_.Status)" -eq 'Up' }) {
    $ip = Get-NetIPInterface -InterfaceIndex $adapter.ifIndex -AddressFamily IPv4
    $statistics = Get-NetAdapterStatistics -Name $adapter.Name
    $entry = [ordered]@{ name = $adapter.Name; mtu_bytes = [int]$ip.NlMtu; speed_bps = [int64]$adapter.Speed }
    if ($null -ne $adapter.FullDuplex) { $entry.duplex = $(if ($adapter.FullDuplex) { 'full' } else { 'half' }) }
    $entry.counters = [ordered]@{
        rx_packets = [int64]$statistics.ReceivedUnicastPackets; rx_errors = [int64]$statistics.ReceivedPacketErrors
        rx_dropped = [int64]$statistics.ReceivedDiscardedPackets; tx_packets = [int64]$statistics.SentUnicastPackets
        tx_errors = [int64]$statistics.OutboundPacketErrors; tx_dropped = [int64]$statistics.OutboundDiscardedPackets
    }
    $entry.offloads = [ordered]@{}
    $lso = Get-NetAdapterLso -Name $adapter.Name
    if ($lso) { $entry.offloads.tso = [bool]$lso.IPv4Enabled }
    $rsc = Get-NetAdapterRsc -Name $adapter.Name
    if ($rsc) { $entry.offloads.gro = [bool]$rsc.IPv4Enabled }
    $interfaces += $entry
}
foreach ($filter in Get-NetTransportFilter) {
    Add "filter/$($filter.SettingName)/$($filter.DestinationPrefix)" $filter.Protocol
}

$system = Get-CimInstance Win32_ComputerSystem
[ordered]@{
    schema = 'fullpipe/snapshot/v1'
    taken_at = (Get-Date).ToUniversalTime().ToString('yyyy-MM-ddTHH:mm:ssZ')
    host = $env:COMPUTERNAME
    system = $(if ([Environment]::OSVersion.Version.Major -lt 6) { 'windows-2000' } else { 'windows' })
    version = [Environment]::OSVersion.Version.ToString(3)
    values = $values
    memory_bytes = [int64]$system.TotalPhysicalMemory
    interfaces = @($interfaces)
    unread = @($unread)
} | ConvertTo-Json -Depth 5

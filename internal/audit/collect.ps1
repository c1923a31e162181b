# Writes what fullpipe audits about this host, as lines on standard output. It changes
# nothing and needs no privileges:
#     powershell -ExecutionPolicy Bypass -File collect.ps1 > host.snapshot;  fullpipe audit host.snapshot
# PowerShell 2.0 and later. Windows 7 and Server 2008 R2, which lack the cmdlets, give the registry and netsh's text.
$ErrorActionPreference = 'SilentlyContinue'

# Enumerations are written as words: their numbers differ between versions, and netsh's
# text follows the system's language.
function Add($name, $value) { if ($null -ne $value -and "$value" -ne '') { "value $name $value" } }

'fullpipe-snapshot 1'
"system $(if ([Environment]::OSVersion.Version.Major -lt 6) { 'windows-2000' } else { 'windows' })"
"version $([Environment]::OSVersion.Version.ToString(3))"
"host $env:COMPUTERNAME"
"taken $((Get-Date).ToUniversalTime().ToString('yyyy-MM-ddTHH:mm:ssZ'))"
$system = Get-CimInstance Win32_ComputerSystem
if (-not $system) { $system = Get-WmiObject Win32_ComputerSystem }
if ($system) { "memory $([int64]$system.TotalPhysicalMemory)" }

$tcpip = 'HKLM:\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters'
foreach ($name in 'TcpWindowSize', 'GlobalMaxTcpWindowSize', 'Tcp1323Opts', 'EnablePMTUDiscovery', 'SackOpts') {
    Add $name (Get-ItemProperty -Path $tcpip -Name $name).$name
}
foreach ($name in 'DefaultSendWindow', 'DefaultReceiveWindow') {
    Add $name (Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Services\AFD\Parameters' -Name $name).$name
}
# what "netsh winsock set autotuning off" writes
$dynamic = (Get-ItemProperty -Path 'HKLM:\SYSTEM\CurrentControlSet\Services\AFD\Parameters' `
    -Name DynamicSendBufferDisable).DynamicSendBufferDisable
if ($null -ne $dynamic) {
    'text HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\AFD\Parameters'
    "text DynamicSendBufferDisable REG_DWORD $dynamic"
}
foreach ($interface in @(Get-ChildItem "$tcpip\Interfaces")) {
    foreach ($name in 'TcpWindowSize', 'TcpAckFrequency', 'TCPNoDelay', 'MTU') {
        Add "Interfaces/$($interface.PSChildName)/$name" (Get-ItemProperty -Path $interface.PSPath -Name $name).$name
    }
}

$templates = Get-NetTCPSetting
if (-not $templates) {
    'unread Get-NetTCPSetting: no such cmdlet, or no answer; netsh int tcp show global instead'
    netsh int tcp show global | ForEach-Object { "text $_" }
    netsh int tcp show heuristics | ForEach-Object { "text $_" }
}
foreach ($template in @($templates | Where-Object { $_ })) {
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

foreach ($adapter in @(Get-NetAdapter | Where-Object { "$($_.Status)" -eq 'Up' })) {
    $ip = Get-NetIPInterface -InterfaceIndex $adapter.ifIndex -AddressFamily IPv4
    $statistics = Get-NetAdapterStatistics -Name $adapter.Name
    $line = "interface $($adapter.Name -replace '\s', '_') mtu $([int]$ip.NlMtu) speed_mbit $([int64]($adapter.Speed / 1e6))"
    if ($null -ne $adapter.FullDuplex) { $line += " duplex $(if ($adapter.FullDuplex) { 'full' } else { 'half' })" }
    $line += " rx_packets $([int64]$statistics.ReceivedUnicastPackets) rx_errors $([int64]$statistics.ReceivedPacketErrors)"
    $line += " rx_dropped $([int64]$statistics.ReceivedDiscardedPackets) tx_packets $([int64]$statistics.SentUnicastPackets)"
    $line += " tx_errors $([int64]$statistics.OutboundPacketErrors) tx_dropped $([int64]$statistics.OutboundDiscardedPackets)"
    $lso = Get-NetAdapterLso -Name $adapter.Name
    if ($lso) { $line += " tso $([int][bool]$lso.IPv4Enabled)" }
    $rsc = Get-NetAdapterRsc -Name $adapter.Name
    if ($rsc) { $line += " gro $([int][bool]$rsc.IPv4Enabled)" }
    $line
}
$filters = @(Get-NetTransportFilter | Where-Object { $_ })
if ($templates) { Add 'filters' $filters.Count }
foreach ($filter in $filters) {
    Add "filter/$($filter.SettingName)/$($filter.DestinationPrefix)" $filter.Protocol
}

@echo off
rem Writes what fullpipe audits about this host, as lines on standard output. It changes nothing:
rem     collect.cmd > host.snapshot        then, elsewhere: fullpipe audit host.snapshot
rem Windows 2000 to Server 2008 R2, without PowerShell. Only the named values are written.
setlocal
echo fullpipe-snapshot 1
echo system windows-2000
echo host %COMPUTERNAME%
for /f "tokens=*" %%l in ('ver') do echo text %%l
set services=HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services
set names=TcpWindowSize GlobalMaxTcpWindowSize Tcp1323Opts SackOpts EnablePMTUDiscovery EnablePMTUBHDetect MTU
set names=%names% TcpAckFrequency TcpDelAckTicks TCPNoDelay DefaultSendWindow DefaultReceiveWindow
set names=%names% DynamicSendBufferDisable
reg query %services%\Tcpip\Parameters >nul 2>nul
if errorlevel 1 goto regedit
rem reg puts a tab between name and value until Windows 2003, and spaces later
for %%k in (Tcpip AFD) do for /f "tokens=1* delims=\	 " %%a in ('reg query %services%\%%k\Parameters /s') do (
    if "%%a"=="HKEY_LOCAL_MACHINE" echo text %%a\%%b
    for %%n in (%names%) do if /i "%%n"=="%%a" echo text %%a %%b
)
goto netsh
:regedit
rem Windows 2000 has reg.exe only with its support tools
for %%k in (Tcpip AFD) do regedit /e "%TEMP%\fullpipe-%%k.reg" "%services%\%%k\Parameters"
for %%k in (Tcpip AFD) do for /f "tokens=1* delims=\[=" %%a in ('type "%TEMP%\fullpipe-%%k.reg"') do (
    if "%%a"=="HKEY_LOCAL_MACHINE" echo text [%%a\%%b
    for %%n in (%names%) do if /i "%%n"=="%%~a" echo text %%a=%%b
)
for %%k in (Tcpip AFD) do del "%TEMP%\fullpipe-%%k.reg"
:netsh
for /f "tokens=*" %%l in ('netsh int tcp show global 2^>nul') do echo text %%l
for /f "tokens=*" %%l in ('netsh int tcp show heuristics 2^>nul') do echo text %%l
